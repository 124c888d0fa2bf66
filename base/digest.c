/* base/digest.c - two FNV-1a lanes over length and bytes */
#include "base/digest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void step(struct ft_digest *d, uint8_t byte)
{
	const uint64_t prime = 0x100000001b3;

	d->low = (d->low ^ byte) * prime;
	d->high = (d->high ^ (uint8_t)~byte) * prime;
	d->high = d->high << 13 | d->high >> 51;
}

void digest_bytes(struct ft_digest *digest, const void *bytes, size_t n)
{
	const uint64_t start = 0xcbf29ce484222325;
	const uint8_t *p = bytes;

	digest->low ^= start + n;
	digest->high ^= start - n;
	for (size_t i = 0; i < n; i++)
		step(digest, p[i]);
	step(digest, 0xff);
}

void digest_text(struct ft_digest *digest, const char *text)
{
	digest_bytes(digest, text, strlen(text));
}

void digest_hex(const struct ft_digest *digest, char out[33])
{
	snprintf(out, 33, "%016" PRIx64 "%016" PRIx64, digest->low, digest->high);
}
