# tests/parameters.awk - a function has at most six parameters; more of them are a struct with
# names. Reads C in the house's format: a definition begins in column 0, `{` stands alone.
# The exception is of libmicrohttpd's type.
BEGIN {
	allowed["serve/http_call.c:http_handle"] = 8
}
FNR == 1 { head = "" }
/^[A-Za-z_].*[(]/ || head != "" {
	head = head " " $0
	if ($0 ~ /[;}=]$/ || $0 ~ /^#/) head = ""
}
/^{$/ && head != "" {
	s = head
	sub(/^[^(]*[(]/, "", s)
	depth = 1; n = 1
	for (i = 1; i <= length(s) && depth; i++) {
		c = substr(s, i, 1)
		if (c == "(") depth++
		else if (c == ")") depth--
		else if (c == "," && depth == 1) n++
	}
	if (n > 6) {
		name = head
		sub(/[(].*/, "", name)
		sub(/.*[ *]/, "", name)
		if (n > allowed[FILENAME ":" name]) {
			print FILENAME ":" FNR ": " name " has " n " parameters, 6 at most"
			bad = 1
		}
	}
	head = ""
}
/^}/ { head = "" }
END { exit bad }
