/* reports/network_svg.c - a cluster's network drawn: its tiers, at most eight boxes of a kind */
#include "reports/network_svg.h"

#include <inttypes.h>

enum { WIDE = 640, STEP = 74, BOX = 40 };

/* A row of boxes with what it is, and what follows that of several; how many are drawn. */
static int layer(FILE *out, int y, int64_t count, const char *what, const char *plural)
{
	int shown = count < 8 ? (int)count : 8;

	for (int i = 0; i < shown; i++)
		fprintf(out,
			"<rect x=\"%d\" y=\"%d\" width=\"30\" height=\"%d\" rx=\"4\"/>",
			20 + i * 44, y, BOX);
	fprintf(out, "<text x=\"%d\" y=\"%d\">%" PRId64 " %s%s</text>\n", 30 + 8 * 44,
		y + 25, count, what, count == 1 ? "" : plural);
	return shown;
}

/* Lines between two rows; every box of the one to every box of the other. */
static void cables(FILE *out, int y, int above, int below, int64_t count)
{
	for (int i = 0; i < above; i++)
		for (int k = 0; k < below; k++)
			fprintf(out,
				"<line x1=\"%d\" y1=\"%d\" x2=\"%d\" y2=\"%d\" "
				"stroke-width=\"0.5\"/>",
				35 + i * 44, y + BOX, 35 + k * 44, y + STEP);
	fprintf(out,
		"<text x=\"%d\" y=\"%d\" opacity=\"0.8\">%" PRId64 " cable%s</text>\n",
		30 + 8 * 44, y + BOX + 21, count, count == 1 ? "" : "s");
}

/* What a file of its own needs; in a page the page's style says it. */
static const char alone_style[] =
	"<style>rect{fill:none;stroke:#1f5f8b}line{stroke:#53606c}text{fill:#1d2126;"
	"font:14px sans-serif}</style><rect width=\"100%\" height=\"100%\" "
	"style=\"fill:#fff;stroke:none\"/>\n";

void network_svg(FILE *out, const struct ft_cluster *c, const char *said, bool alone)
{
	const struct ft_topology *t = &c->topology;
	const struct {
		int64_t count, cables;
		const char *what, *plural;
	} all[] = {
		{ t->top, t->cables_core_top, "top switch", "es" },
		{ t->core, t->cables_spine_core, "core switch", "es" },
		{ t->spine, t->cables_leaf_spine, "spine switch", "es" },
		{ t->leaf, t->cables_node_leaf, "leaf switch", "es" },
		{ c->nodes, 0, "node", "s" },
	};
	enum { ALL = sizeof(all) / sizeof(*all) };
	int rows = 0, y = 6, above = 0;
	int64_t between = 0;

	for (size_t i = 0; i < ALL; i++)
		rows += all[i].count > 0;
	fprintf(out,
		"<svg %sviewBox=\"0 0 %d %d\" width=\"%d\" role=\"img\" aria-label=\"%s\">\n",
		alone ? "xmlns=\"http://www.w3.org/2000/svg\" " : "", WIDE,
		rows * STEP - STEP + BOX + 12, WIDE, said);
	if (alone)
		fputs(alone_style, out);
	for (size_t i = 0; i < ALL; i++) {
		int boxes;

		if (!all[i].count)
			continue;
		boxes = layer(out, y, all[i].count, all[i].what, all[i].plural);
		if (above)
			cables(out, y - STEP, above, boxes, between);
		above = boxes;
		between = all[i].cables;
		y += STEP;
	}
	fputs("</svg>\n", out);
}
