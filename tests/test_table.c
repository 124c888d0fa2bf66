/*
 * tests/test_table.c - tables on a terminal that is too narrow for them, folded in the obvious way
 *
 * Tables and widths are drawn. Texts, and heads, go on below where they are longer than the most
 * that lets all columns stand beside each other, of 60 down to 24; of 24 the columns that have no
 * room are put below, each time behind the first one.
 */
#include <fcntl.h>
#include <pthread.h>
#include <sys/ioctl.h>
#include <termios.h>

#include "reports/table.h"
#include "tests/printed.h"

enum { DRAWS = 400, COLUMNS = 9, ROWS = 5, TEXT = 120, LEAST = 24, MOST = 60, END = 1 };

static uint64_t seed = 5;

struct made {
	int columns, rows;
	bool right[COLUMNS];
	char cell[ROWS + 1][COLUMNS][TEXT]; /* heads first, without '>' */
};

/* ---- what is drawn ------------------------------------------------------------------- */

static void draw_text(char to[TEXT], int words)
{
	static const char *const word[] = {
		"a",
		"of",
		"tokens",
		"tp4/pp2,cp1;x:y",
		"overlap",
		"gpt-1.5b-long-name",
		"\303\251t\303\251",
		"measured-by-some-other-program-than-ours"
	};
	size_t n = 0;

	to[0] = '\0';
	for (int i = 0; i < words; i++) {
		const char *w = word[rnd_below(&seed, 8)];

		if (n + strlen(w) + 2 < TEXT)
			n += (size_t)sprintf(to + n, "%s%s", i ? " " : "", w);
	}
}

static void draw_cell(struct made *m, int row, int c)
{
	char *to = m->cell[row][c];

	if (!row)
		snprintf(to, TEXT, "%s%d",
			 (const char *const[]){
				 "n", "head of", "USD/Mtokens",
				 "a-head-that-is-itself-long" }[rnd_below(&seed, 4)],
			 c);
	else if (m->right[c])
		snprintf(to, TEXT, "%d.%d",
			 rnd_below(&seed, 2) ? rnd_below(&seed, 10000000) :
					       rnd_below(&seed, 10),
			 rnd_below(&seed, 100));
	else if (rnd_below(&seed, 8))
		draw_text(to, 1 + rnd_below(&seed, 5));
	if (row && !c) /* a row begins where its first cell does */
		snprintf(to, TEXT, "%s%d", m->right[0] ? "" : "row", row);
}

static void draw_table(struct made *m)
{
	*m = (struct made){ .columns = 1 + rnd_below(&seed, COLUMNS),
			    .rows = 1 + rnd_below(&seed, ROWS) };
	for (int c = 0; c < m->columns; c++) {
		m->right[c] = rnd_below(&seed, 2);
		for (int row = 0; row <= m->rows; row++)
			draw_cell(m, row, c);
	}
}

/* ---- the obvious way ----------------------------------------------------------------- */

/* How much of a text comes first: whole words, else to behind a sign, else characters. */
static int first_of(const char *text, int most)
{
	int n = (int)strlen(text), at;

	if (n <= most)
		return n;
	for (at = most; at > 0; at--)
		if (text[at] == ' ')
			return at;
	for (at = most; at > most / 2; at--)
		if (strchr("-/,;:", text[at - 1]))
			return at;
	at = most;
	while (((unsigned char)text[at] & 0xC0) == 0x80)
		at--;
	return at;
}

static int bytes(const struct made *m, int c, bool head)
{
	int most = head ? (int)strlen(m->cell[0][c]) : 0;

	for (int row = 1; row <= m->rows && !head; row++)
		if ((int)strlen(m->cell[row][c]) > most)
			most = (int)strlen(m->cell[row][c]);
	return most;
}

/* Of a column whose texts and head are folded; a number is not. */
static int room(const struct made *m, int c, int most)
{
	int head = bytes(m, c, true), cells = bytes(m, c, false);

	head = head < most ? head : most;
	cells = cells < most || m->right[c] ? cells : most;
	return head > cells ? head : cells;
}

static int room_of_all(const struct made *m, int most)
{
	int all = 0;

	for (int c = 0; c < m->columns; c++)
		all += room(m, c, most) + (c ? 2 : 0);
	return all;
}

/* The lines that a row takes of these columns, into a grid. */
static int fold_row(const struct made *m, int row, const int *column, int n, int most,
		    char grid[][COLUMNS][TEXT])
{
	int lines = 0;
	bool left = true;
	const char *at[COLUMNS];

	for (int i = 0; i < n; i++)
		at[i] = m->cell[row][column[i]];
	while (left) {
		left = false;
		for (int i = 0; i < n; i++) {
			bool whole = row && m->right[column[i]];
			int k = whole ? (int)strlen(at[i]) : first_of(at[i], most);

			snprintf(grid[lines][i], TEXT, "%.*s", k, at[i]);
			at[i] += k + (at[i][k] == ' ');
			left |= *at[i] != '\0';
		}
		lines++;
	}
	return lines;
}

/* ---- on a terminal ------------------------------------------------------------------- */

struct heard {
	int from;
	char text[1 << 16];
	size_t n;
};

/* Up to the sign that ends it: of a terminal that is closed the last lines can be lost. */
static void *listen_to(void *state)
{
	struct heard *h = state;
	ssize_t k;

	while (h->n < sizeof(h->text) - 1 && !memchr(h->text, END, h->n) &&
	       (k = read(h->from, h->text + h->n, sizeof(h->text) - 1 - h->n)) > 0)
		h->n += (size_t)k;
	h->text[h->n] = '\0';
	h->text[strcspn(h->text, (char[]){ END, '\0' })] = '\0';
	return NULL;
}

static void put_table(FILE *out, const struct made *m)
{
	char head[COLUMNS][TEXT + 1];
	const char *name[COLUMNS];
	struct table t;

	for (int c = 0; c < m->columns; c++) {
		snprintf(head[c], sizeof(head[c]), "%s%s", m->right[c] ? ">" : "",
			 m->cell[0][c]);
		name[c] = head[c];
	}
	t = table_open(out, name, (size_t)m->columns);
	for (int row = 1; row <= m->rows; row++) {
		table_row(&t);
		for (int c = 0; c < m->columns; c++)
			table_put(&t, "%s", m->cell[row][c]);
	}
	table_close(&t);
}

static void on_terminal(const struct made *m, int width, struct heard *h)
{
	int ours = posix_openpt(O_RDWR | O_NOCTTY), theirs;
	struct winsize size = { .ws_col = (unsigned short)width, .ws_row = 24 };
	struct termios how;
	pthread_t listener;
	FILE *out;

	assert_true(ours >= 0 && !grantpt(ours) && !unlockpt(ours));
	theirs = open(ptsname(ours), O_RDWR | O_NOCTTY);
	assert_true(theirs >= 0 && !ioctl(theirs, TIOCSWINSZ, &size));
	assert_int_equal(tcgetattr(theirs, &how), 0);
	how.c_oflag &= ~(tcflag_t)OPOST;
	assert_int_equal(tcsetattr(theirs, TCSANOW, &how), 0);
	h->from = ours;
	h->n = 0;
	assert_int_equal(pthread_create(&listener, NULL, listen_to, h), 0);
	out = fdopen(theirs, "w");
	put_table(out, m);
	putc(END, out);
	fflush(out);
	pthread_join(listener, NULL);
	fclose(out);
	close(ours);
}

/* ---- held against each other --------------------------------------------------------- */

static int characters(const char *text)
{
	int n = 0;

	for (; *text; text++)
		n += ((unsigned char)*text & 0xC0) != 0x80;
	return n;
}

/* One line of a block: each cell in its place, flush, parted by two blanks. */
static const char *a_line_is(const struct made *m, const char *text, const int *column,
			     int n, const int *width, char cell[COLUMNS][TEXT])
{
	char want[1024];
	size_t k = 0, got = strcspn(text, "\n");

	for (int i = 0; i < n; i++) {
		int pad = width[i] - characters(cell[i]);

		k += (size_t)sprintf(want + k, "%s%*s%s%*s", i ? "  " : "",
				     m->right[column[i]] ? pad : 0, "", cell[i],
				     m->right[column[i]] ? 0 : pad, "");
	}
	while (k && want[k - 1] == ' ') /* nothing is behind the last cell */
		k--;
	want[k] = '\0';
	while (got && text[got - 1] == ' ')
		got--;
	if (got != k || strncmp(want, text, k) != 0)
		fail_msg("'%.*s', wanted\n'%s'", (int)got, text, want);
	text += strcspn(text, "\n");
	return *text ? text + 1 : text;
}

static const char *a_block_is(const struct made *m, const char *text, const int *column,
			      int n, int most)
{
	static char grid[16 * (ROWS + 1)][COLUMNS][TEXT];
	int lines = 0, width[COLUMNS] = { 0 };

	for (int row = 0; row <= m->rows; row++)
		lines += fold_row(m, row, column, n, most, grid + lines);
	for (int line = 0; line < lines; line++)
		for (int i = 0; i < n; i++)
			if (characters(grid[line][i]) > width[i])
				width[i] = characters(grid[line][i]);
	for (int line = 0; line < lines; line++)
		text = a_line_is(m, text, column, n, width, grid[line]);
	return text;
}

static int hold(const struct made *m, int width, const char *text)
{
	int most = MOST, blocks = 0;

	if (room_of_all(m, TEXT) <= width)
		most = TEXT;
	else
		while (most > LEAST && room_of_all(m, most) > width)
			most--;
	for (int at = 1; at < m->columns || !blocks; blocks++) {
		int column[COLUMNS] = { 0 }, n = 1, used = room(m, 0, most);

		if (blocks && *text++ != '\n')
			fail_msg("no empty line before '%s'", text - 1);
		/* below, one stands beside the first whether there is room or not */
		while (at < m->columns && (used += 2 + room(m, at, most),
					   used <= width || (blocks && n == 1)))
			column[n++] = at++;
		text = a_block_is(m, text, column, n, most);
	}
	assert_string_equal(text, "");
	return blocks;
}

static void what_is_too_wide_is_folded(void **state)
{
	static struct heard h;
	int seen[4] = { 0 };

	(void)state;
	for (int i = 0; i < DRAWS; i++) {
		int width = 20 + rnd_below(&seed, 120), blocks;
		struct made m;

		draw_table(&m);
		on_terminal(&m, width, &h);
		blocks = hold(&m, width, h.text);
		seen[blocks < 3 ? blocks : 3]++;
	}
	assert_true(seen[1] > 50 && seen[2] > 50 && seen[3] > 10);
}

static void a_stream_that_is_none_has_all(void **state)
{
	(void)state;
	for (int i = 0; i < 50; i++) {
		struct made m;
		char *text = NULL;

		draw_table(&m);
		PRINTED(text, put_table(out, &m));
		assert_int_equal(hold(&m, 1 << 20, text), 1);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_too_wide_is_folded),
		cmocka_unit_test(a_stream_that_is_none_has_all),
	};

	return cmocka_run_group_tests_name("reports/table", tests, NULL, NULL);
}
