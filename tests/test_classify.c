/* tests/test_classify.c - what kernels are, by the names that libraries give them */
#include "tests/made_recording.h"

static const struct {
	enum ft_rec_class is;
	const char *name;
} kernels[] = {
	/* wrappers, named after what they are given */
	{ FT_REC_ATTENTION,
	  "void cutlass::device_kernel<flash::enable_sm90<flash::FlashAttnFwdSm90<cute::C<1> > "
	  "> >(flash::FlashAttnFwdSm90<cute::C<1> >::Params)" },
	{ FT_REC_GEMM,
	  "void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_tn>(cutlass_80::Params)" },
	{ FT_REC_OPTIMIZER,
	  "void at::native::(anonymous namespace)::multi_tensor_apply_kernel<at::native::"
	  "FusedAdamMathFunctor<float> >(int)" },
	/* the function says it, whatever its types and namespaces are called */
	{ FT_REC_MEMORY,
	  "std::enable_if<(((8)>(0)))&&vllm::_typeConvert<c10::BFloat16>::exists, void>::type "
	  "vllm::fused_add_rms_norm_kernel<c10::BFloat16, 8>(c10::BFloat16*, long)" },
	{ FT_REC_MEMORY,
	  "void flashinfer::norm::FusedAddRMSNormKernel<8u, __nv_bfloat16>(__nv_bfloat16*)" },
	{ FT_REC_MEMORY,
	  "void flashinfer::sampling::TopPSamplingFromProbKernel<1024u, float>(float*)" },
	{ FT_REC_MEMORY,
	  "void tensorrt_llm::kernels::quantize_with_block_size<(tensorrt_llm::"
	  "BlockScaleQuantizationType)2, true>(int, flashinfer::QuantizationSFLayout)" },
	{ FT_REC_MEMORY,
	  "void at::native::elementwise_kernel<128, 4, at::native::op<cutlass::half_t> >(int)" },
	{ FT_REC_ATTENTION,
	  "void vllm::paged_attention_v2_reduce_kernel<unsigned short, 128>(unsigned short*)" },
	/* then its namespaces */
	{ FT_REC_MEMORY,
	  "void moe::dev::finalize::finalizeKernelVecLoad<moe::dev::KernelParams<cutlass::"
	  "bfloat16_t> >(moe::dev::KernelParams<cutlass::bfloat16_t>)" },
	{ FT_REC_ATTENTION,
	  "void flashinfer::BatchPrefillWithPagedKVCacheKernel<flashinfer::Traits<1> >(int)" },
	{ FT_REC_ATTENTION,
	  "void flashinfer::BatchDecodeKernel<flashinfer::Traits<1> >(int)" },
	/* no function of C++ */
	{ FT_REC_GEMM, "Cijk_Alik_Bljk_BBS_BH_MT128x128x32" },
	{ FT_REC_MEMORY, "triton_poi_fused__scaled_mm__to_copy_clamp_0" },
	{ FT_REC_OTHER, "void <((" },
	{ FT_REC_OTHER, ">>)) ::" },
};

enum { KERNELS = sizeof(kernels) / sizeof(*kernels) };

static void each_is_what_its_name_says(void **state)
{
	struct made m = begin(0);
	struct ft_recording *r;

	(void)state;
	for (int i = 0; i < KERNELS; i++)
		kernel(&m, kernels[i].name, 1 + i, 7, 10 + 10 * i, 5);
	r = end(&m);
	for (size_t i = 0; i < KERNELS; i++) {
		enum ft_rec_class is = ft_recording_op(r, i)->rec_class;

		if (is != kernels[i].is)
			fail_msg("%s, not %s: %s", ft_rec_class_name(is),
				 ft_rec_class_name(kernels[i].is), kernels[i].name);
	}
	ft_recording_free(r);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(
		each_is_what_its_name_says) };
	int failed =
		cmocka_run_group_tests_name("recorded/classify", tests, NULL, NULL);

	unlink(made_path());
	return failed;
}
