# tests/banned.sh - what the library and the program must not use
#
# Functions that overflow, hide state or hide errors; mutable variables that live
# longer than a call. Comments and strings are taken out first.
cd "$(dirname "$0")/.."
folders="base hw models stacks traces sim recorded cost study calibrate reports serve cli"
bad=0
code() { # FILE: its text without comments and strings, line numbers kept
	awk '
	{
		line = $0; out = ""
		while (length(line)) {
			if (within) {
				i = index(line, "*/")
				if (!i) { line = ""; break }
				line = substr(line, i + 2); within = 0
				continue
			}
			if (match(line, /^"([^"\\]|\\.)*"/)) { out = out "\"\""; line = substr(line, RLENGTH + 1) }
			else if (match(line, /^\047([^\047\\]|\\.)*\047/)) { out = out "0"; line = substr(line, RLENGTH + 1) }
			else if (substr(line, 1, 2) == "/*") { within = 1; line = substr(line, 3) }
			else if (substr(line, 1, 2) == "//") line = ""
			else { out = out substr(line, 1, 1); line = substr(line, 2) }
		}
		print out
	}' "$1"
}
for f in $(find $folders include -name '*.[ch]'); do
	# calls by name; strtok_r, snprintf and the like are other words
	found=$(code "$f" | grep -nE '(^|[^A-Za-z0-9_>.])(strcpy|strcat|sprintf|vsprintf|strtok|atoi|atol|atoll|atof|rand|srand|random|drand48|gets|tmpnam|asctime|ctime|localtime|gmtime)[[:space:]]*\(')
	[ -z "$found" ] || { echo "$found" | sed "s|^|$f:|"; bad=1; }
	# a static or global object that can change: at column 0, or `static` within a
	# function; constants, functions and types are not meant
	found=$(code "$f" | awk '
		function constant(s) { return s ~ /(^|[^A-Za-z0-9_])const([^A-Za-z0-9_]|$)/ && (s !~ /\*[ ]*[a-z_]+[ ]*(\[[^]]*\])*[ ]*(=|;)/ || s ~ /\*[ ]*const/) }
		/^[ \t]*static[ \t]/ || /^(extern[ \t]+)?(_Thread_local[ \t]+)?(struct [a-z_]+|enum [a-z_]+|unsigned|int|char|bool|double|float|long|size_t|u?int[0-9]+_t)[ \t*]+[a-z_]+(\[[^]]*\])*[ \t]*(=|;)/ {
			s = $0
			sub(/^[ \t]+/, "", s)
			if (s ~ /^static[ \t]+inline/ || constant(s)) next
			eq = index(s, "="); par = index(s, "(")
			if (par && (!eq || par < eq)) next      # a function
			if (s !~ /[=;\[]/) next                 # a type on a line of its own
			if (s ~ /^(struct|enum) [a-z_]+;/) next # declared only
			if (s ~ /^extern char \*\*environ;/) next    # of the C library
			print NR ": mutable: " s
		}')
	[ -z "$found" ] || { echo "$found" | sed "s|^|$f:|"; bad=1; }
done
exit $bad
