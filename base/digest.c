/* base/digest.c - two lanes of multiply and shift over length and bytes */
#include "base/digest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Eight bytes at a time; a multiplication carries them upwards, a shift back down. */
static void step(struct ft_digest *d, uint64_t word)
{
	const uint64_t prime = 0x9e3779b97f4a7c15;

	d->low = (d->low ^ word) * prime;
	d->low ^= d->low >> 32;
	d->high = (d->high + word) * (prime + 2 * (d->low & 0xffff));
	d->high ^= d->high >> 29;
}

void digest_bytes(struct ft_digest *digest, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	uint64_t word;

	step(digest, n);
	for (; n >= sizeof(word); n -= sizeof(word), p += sizeof(word)) {
		memcpy(&word, p, sizeof(word));
		step(digest, word);
	}
	word = 0;
	memcpy(&word, p, n);
	step(digest, word);
}

void digest_text(struct ft_digest *digest, const char *text)
{
	digest_bytes(digest, text, strlen(text));
}

void digest_hex(const struct ft_digest *digest, char out[33])
{
	snprintf(out, 33, "%016" PRIx64 "%016" PRIx64, digest->low, digest->high);
}
