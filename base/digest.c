/* base/digest.c - two lanes of multiply and shift over length and bytes */
#include "base/digest.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { LANES = 4, LONG = 256 };

/* Eight bytes at a time; a multiplication carries them upwards, a shift back down. */
static void step(struct ft_digest *d, uint64_t word)
{
	const uint64_t prime = 0x9e3779b97f4a7c15;

	d->low = (d->low ^ word) * prime;
	d->low ^= d->low >> 32;
	d->high = (d->high + word) * (prime + 2 * (d->low & 0xffff));
	d->high ^= d->high >> 29;
}

/* Four digests, each of every fourth word, then theirs: a processor takes the four steps at
 * once. Returns how many bytes that was. */
static size_t by_fours(struct ft_digest *digest, const uint8_t *p, size_t n)
{
	struct ft_digest lane[LANES];
	uint64_t word[LANES];
	size_t done = 0;

	for (int i = 0; i < LANES; i++)
		lane[i] = (struct ft_digest){ (uint64_t)i, digest->low };
	for (; n - done >= sizeof(word); done += sizeof(word)) {
		memcpy(word, p + done, sizeof(word));
		for (int i = 0; i < LANES; i++)
			step(&lane[i], word[i]);
	}
	for (int i = 0; i < LANES; i++) {
		step(digest, lane[i].low);
		step(digest, lane[i].high);
	}
	return done;
}

void digest_bytes(struct ft_digest *digest, const void *bytes, size_t n)
{
	const uint8_t *p = bytes;
	uint64_t word;

	step(digest, n);
	if (n >= LONG) {
		size_t done = by_fours(digest, p, n);

		p += done;
		n -= done;
	}
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
