# awk -f tests/layers.awk layers FILE... - does every #include keep to layers?
#   "foretoken/X.h"   allowed when the layers file lists X for the includer's folder
#   "X/anything.h"    private: allowed to X itself; base is open to all
# A public header include/foretoken/X.h or X_PART.h belongs to folder X. calibrate/probes is a wing
# of its own: it and the rest include nothing of each other.
FNR == NR {
	if (!/^[a-z]+:/) next
	folder = $1; sub(":", "", folder)
	known[folder]
	for (i = 2; i <= NF; i++) {
		if (!($i in known)) { print FILENAME ":" FNR ": " $i " is not below " folder; bad = 1 }
		may[folder, $i]
	}
	may[folder, folder]
	next
}
/^#include "[a-z]+\// {
	split(FILENAME, from, "/"); split($2, to, /["\/.]/)
	me = from[1] == "include" ? substr(from[3], 1, length(from[3]) - 2) : from[1]
	it = to[2]
	sub(/_.*/, "", me)
	sub(/_.*/, "", to[3])
	if (from[2] == "probes") me = "probes"
	if (to[3] == "probes") it = "probes"
	ok = it == "foretoken" ? (me, to[3]) in may : it == me || (it == "base" && me != "probes")
	if (!ok) { print FILENAME ":" FNR ": " me " may not include " $2; bad = 1 }
}
END { exit bad }
