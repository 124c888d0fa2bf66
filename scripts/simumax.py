#!/usr/bin/env python3
"""scripts/simumax.py - the held-out third of measurements/published/simumax.csv.gz as a table
that `validate` reads: measurements/kernels/simumax-b200.csv, on standard output."""
import csv
import gzip
import os
import sys

root = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
kept = ("kernel,gpu,dtype,warm,clock,layout,m,n,k,groups,accumulate,impl,pass,batch,heads,kv_heads,"
        "sequence_length,head_dim,v_head_dim,causal,measured.time_us").split(",")
with gzip.open(root + "/measurements/published/simumax.csv.gz", "rt") as f:
    rows = list(csv.DictReader(line for line in f if not line.startswith("#")))
out = csv.writer(sys.stdout, lineterminator="\n")
out.writerow(kept + ["group", "source"])
for r in rows:
    if r["status"] == "held-out":
        what = "attention" if r["kernel"] == "attention" else "grouped" if r["groups"] else "product"
        out.writerow([r[k] for k in kept] +
                     ["%s %s" % (what, r["pass"] or r["layout"]), r["source"] + ", shapes never fitted"])
