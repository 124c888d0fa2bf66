/*
 * base/digest.h - a fingerprint of bytes: 128 bits in two lanes of multiply and shift
 *
 * Tells whether what an answer was made from has changed; not for secrets. A zeroed
 * digest is that of nothing; it is the same on machines of one byte order. Order counts: digest of (a, b) is not that of (b, a), nor
 * that of a and b joined.
 */
#ifndef BASE_DIGEST_H
#define BASE_DIGEST_H

#include "foretoken/base.h"

void digest_bytes(struct ft_digest *digest, const void *bytes, size_t n);
void digest_text(struct ft_digest *digest, const char *text);

/* 32 hexadecimal digits and a NUL. */
void digest_hex(const struct ft_digest *digest, char out[33]);

#endif
