/*
 * reports/network_svg.h - a cluster's network as SVG
 */
#ifndef REPORTS_NETWORK_SVG_H
#define REPORTS_NETWORK_SVG_H

#include <stdio.h>

#include "foretoken/hw.h"

/* said: the alternative text, safe as XML. alone: a file of its own, with its colours. */
void network_svg(FILE *out, const struct ft_cluster *cluster, const char *said,
		 bool alone);

#endif
