/* tests/test_guard.c - who may ask `foretoken serve`: Host, Origin, token */
#include "serve/guard.h"
#include "tests/check.h"

#define TOKEN "0123456789abcdef0123456789abcdef"

static void a_host_is_an_address_or_this_machine(void **state)
{
	static const struct {
		const char *host;
		bool may;
	} hosts[] = {
		{ NULL, false },
		{ "", false },
		{ ":80", false },
		{ "localhost", true },
		{ "LocalHost:7480", true },
		{ "localhost:", true },
		{ "localhost:80x", false },
		{ "localhost:x80", false },
		{ "localhost.evil.org", false },
		{ "evil.org", false },
		{ "evil.org:80", false },
		{ "127.0.0.1", true },
		{ "127.0.0.1:7480", true },
		{ "10.1.2.3:1", true },
		{ "127.0.0.1.evil.org", false },
		{ "127.0.0.256", false },
		{ "[::1]", true },
		{ "[::1]:7480", true },
		{ "[::1]:74x", false },
		{ "[::1]7480", false },
		{ "[::1", false },
		{ "[]", false },
		{ "[]:80", false },
		{ "[::1]]", false },
		{ "[evil.org]", false },
		{ "[fe80::1]:80", true },
		{ "node7", true },
		{ "NODE7:7480", true },
		{ "node77", false },
		{ "node", false },
	};
	char long_name[300];

	(void)state;
	for (size_t i = 0; i < sizeof(hosts) / sizeof(*hosts); i++)
		if (guard_host(hosts[i].host, "node7") != hosts[i].may)
			fail_msg("%s", hosts[i].host ? hosts[i].host : "none");
	assert_false(guard_host("node7", ""));
	assert_true(guard_host("localhost", ""));
	memset(long_name, 'n', sizeof(long_name));
	long_name[256] = '\0';
	assert_false(guard_host(long_name, long_name));
	long_name[255] = '\0';
	assert_true(guard_host(long_name, long_name));
}

static void an_origin_is_the_host_itself(void **state)
{
	static const struct {
		const char *site, *origin, *host;
		bool may;
	} cases[] = {
		{ NULL, NULL, "localhost:1", true },
		{ NULL, NULL, NULL, true },
		{ "same-origin", NULL, "localhost:1", true },
		{ "none", NULL, "localhost:1", true },
		{ "cross-site", NULL, "localhost:1", false },
		{ "same-site", NULL, "localhost:1", false },
		{ "", NULL, "localhost:1", false },
		{ NULL, "http://localhost:1", "localhost:1", true },
		{ NULL, "http://LOCALHOST:1", "localhost:1", true },
		{ NULL, "https://localhost:1", "localhost:1", false },
		{ NULL, "http://localhost:2", "localhost:1", false },
		{ NULL, "http://localhost", "localhost:1", false },
		{ NULL, "http://evil.org", "localhost:1", false },
		{ NULL, "null", "localhost:1", false },
		{ NULL, "", "localhost:1", false },
		{ NULL, "http://localhost:1", NULL, false },
		{ "none", "http://evil.org", "localhost:1", false },
		{ "cross-site", "http://localhost:1", "localhost:1", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct guard_request q = { .host = cases[i].host,
						 .origin = cases[i].origin,
						 .fetch_site = cases[i].site };

		if (guard_origin(&q) != cases[i].may)
			fail_msg("case %zu", i);
	}
}

static void texts_are_the_same_when_each_letter_is(void **state)
{
	char other[] = TOKEN;

	(void)state;
	assert_true(guard_same(TOKEN, TOKEN));
	assert_true(guard_same("", ""));
	assert_false(guard_same("", TOKEN));
	assert_false(guard_same(TOKEN, ""));
	assert_false(guard_same(TOKEN "0", TOKEN));
	for (size_t i = 0; i < sizeof(other) - 1; i++) {
		for (int bit = 0; bit < 8; bit++) {
			other[i] = (char)(TOKEN[i] ^ 1 << bit);
			assert_false(guard_same(other, TOKEN));
		}
		other[i] = '\0';
		assert_false(guard_same(other, TOKEN));
		other[i] = TOKEN[i];
	}
}

static void a_token_is_told_in_either_way(void **state)
{
	static const struct {
		const char *authorization, *cookie;
		bool may;
	} cases[] = {
		{ NULL, NULL, false },
		{ "", "", false },
		{ "Bearer " TOKEN, NULL, true },
		{ "Bearer  " TOKEN, NULL, false },
		{ "bearer " TOKEN, NULL, false },
		{ "Bearer " TOKEN "0", NULL, false },
		{ "Bearer", NULL, false },
		{ "Basic " TOKEN, NULL, false },
		{ TOKEN, NULL, false },
		{ NULL, "foretoken=" TOKEN, true },
		{ "Bearer no", "foretoken=" TOKEN, true },
		{ NULL, "a=b; foretoken=" TOKEN, true },
		{ NULL, "a=b;foretoken=" TOKEN "; c=d", true },
		{ NULL, "foretoken=" TOKEN ";", true },
		{ NULL, "foretoken=" TOKEN "0", false },
		{ NULL, "foretoken=", false },
		{ NULL, "foretoken", false },
		{ NULL, "xforetoken=" TOKEN, false },
		{ NULL, "foretokens=" TOKEN, false },
		{ NULL, "; ; ;", false },
		{ NULL, "a=foretoken=" TOKEN, false },
		{ NULL, "foretoken=" TOKEN TOKEN TOKEN, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct guard_request q = { .authorization =
							 cases[i].authorization,
						 .cookie = cases[i].cookie };

		if (guard_token(&q, TOKEN) != cases[i].may)
			fail_msg("case %zu", i);
	}
}

static void tokens_are_unlike(void **state)
{
	char one[GUARD_TOKEN], other[GUARD_TOKEN];

	(void)state;
	assert_true(guard_make_token(one) && guard_make_token(other));
	assert_int_equal(strlen(one), GUARD_TOKEN - 1);
	assert_int_equal(strspn(one, "0123456789abcdef"), GUARD_TOKEN - 1);
	assert_string_not_equal(one, other);
	assert_true(memcmp(one + 16, other + 16, GUARD_TOKEN - 17) != 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_host_is_an_address_or_this_machine),
		cmocka_unit_test(an_origin_is_the_host_itself),
		cmocka_unit_test(texts_are_the_same_when_each_letter_is),
		cmocka_unit_test(a_token_is_told_in_either_way),
		cmocka_unit_test(tokens_are_unlike),
	};

	return cmocka_run_group_tests_name("serve/guard", tests, NULL, NULL);
}
