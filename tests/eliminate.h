/* tests/eliminate.h - a system of linear equations, by elimination: the obvious way beside a clever one */
#ifndef TESTS_ELIMINATE_H
#define TESTS_ELIMINATE_H

#include <stddef.h>

/* x of a x = b, with n of a's rows of `room` numbers; a and b are spoilt. No pivot: for
 * matrices whose diagonal is largest. */
static inline void eliminate(size_t n, size_t room, double *a, double *b, double *x)
{
	for (size_t i = 0; i < n; i++)
		for (size_t j = i + 1; j < n; j++) {
			double by = a[j * room + i] / a[i * room + i];

			for (size_t k = i; k < n; k++)
				a[j * room + k] -= by * a[i * room + k];
			b[j] -= by * b[i];
		}
	for (size_t i = n; i-- > 0;) {
		x[i] = b[i];
		for (size_t k = i + 1; k < n; k++)
			x[i] -= a[i * room + k] * x[k];
		x[i] /= a[i * room + i];
	}
}

#endif
