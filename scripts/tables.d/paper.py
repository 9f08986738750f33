"""Published figures: Machado, Lucia, Rodrigues, "Production-Guided Concurrency Debugging"
(Symbiosis, TOSEM 2016), Tables I, II and III, as printed there."""

# Row of the tables: (our program, size or None, name in the paper)
ROWS = [
    ("crasher", None, "crasher"),
    ("stringbuffer", None, "sbuff"),
    ("bbuf", None, "bbuff"),
    ("pfscan", None, "pfscan"),
    ("pbzip2", "S", "pbz2 (S)"),
    ("pbzip2", "M", "pbz2 (M)"),
    ("pbzip2", "L", "pbz2 (L)"),
    ("airline", None, "airline"),
    ("bank", None, "bank"),
    ("2stage", None, "2stage"),
    ("cache4j", "S", "c4j (S)"),
    ("cache4j", "M", "c4j (M)"),
    ("cache4j", "L", "c4j (L)"),
]

# LOC, threads, shared variables, shared accesses, overhead, log, symbolic time, constraints,
# variables, solver time
TABLE_1 = {
    "crasher": ("70", "6", "4", "266", "25.4%", "458B", "0.02s", "22,295", "400", "1m2s"),
    "sbuff": ("151", "2", "5", "69", "16.7%", "632B", "0.05s", "423", "102", "1s"),
    "bbuff": ("377", "5", "11", "143", "34.4%", "920B", "13s", "2,710", "239", "8s"),
    "pfscan": ("830", "5", "9", "74", "6.6%", "3.8K", "1.87s", "678", "131", "1s"),
    "pbz2 (S)": ("1,942", "9", "14", "176", "2.5%", "1.7K", "11.16s", "1,361", "289", "1s"),
    "pbz2 (M)": ("1,942", "9", "14", "367", "1.3%", "2.6K", "36.17s", "6,771", "564", "26s"),
    "pbz2 (L)": ("1,942", "9", "14", "1,156", "2.5%", "9.4K", "7m11s", "514,548", "2,866",
                 "15h15m"),
    "airline": ("108", "8", "2", "36", "22%", "262B", "1.30s", "2,670", "84", "1s"),
    "bank": ("125", "3", "3", "115", "12.4%", "788B", "1.56s", "8,250", "197", "2s"),
    "2stage": ("123", "4", "4", "49", "14.8%", "196B", "2.53s", "264", "88", "1s"),
    "c4j (S)": ("2,344", "4", "7", "28", "7.3%", "366B", "1.64s", "122", "51", "1s"),
    "c4j (M)": ("2,344", "4", "7", "1,247", "8.6%", "17K", "4.56s", "303,626", "1,810", "51s"),
    "c4j (L)": ("2,344", "4", "7", "1,411", "9.3%", "24K", "4.76s", "1,142,120", "2,051",
                "1h25m"),
}

# Pairs reordered, events, events in the DSP, dataflows, dataflows in the DSP, operations to grok
TABLE_2 = {
    "crasher": ("27", "287", "9", "107", "1", "3"),
    "sbuff": ("9", "73", "15", "28", "1", "3"),
    "bbuff": ("3", "157", "19", "79", "1", "3"),
    "pfscan": ("5", "93", "16", "32", "1", "3"),
    "pbz2 (S)": ("1", "206", "4", "29", "1", "3"),
    "pbz2 (M)": ("1", "397", "3", "82", "1", "3"),
    "pbz2 (L)": ("2", "1223", "168", "264", "2", "5"),
    "airline": ("1", "58", "6", "25", "2", "6"),
    "bank": ("181", "124", "31", "72", "2", "5"),
    "2stage": ("14", "60", "3", "27", "1", "3"),
    "c4j (S)": ("1", "39", "12", "11", "2", "6"),
    "c4j (M)": ("1", "1257", "10", "552", "1", "3"),
    "c4j (L)": ("1", "1422", "5", "628", "1", "3"),
}

# Context switches without and with CSR, time of the reduction (solver calls)
TABLE_3 = {
    "crasher": ("104", "34", "19m33s (166)"),
    "sbuff": ("7", "4", "2s (14)"),
    "bbuff": ("35", "10", "14s (40)"),
    "pfscan": ("23", "9", "9s (32)"),
    "pbz2 (S)": ("74", "14", "14s (59)"),
    "pbz2 (M)": ("151", "22", "4m58s (163)"),
    "pbz2 (L)": ("292", "36", "5h11m (353)"),
    "airline": ("28", "8", "5s (33)"),
    "bank": ("6", "4", "6s (9)"),
    "2stage": ("16", "4", "2s (15)"),
    "c4j (S)": ("4", "4", "<1s (2)"),
    "c4j (M)": ("21", "7", "6m50s (25)"),
    "c4j (L)": ("29", "7", "16m19s (29)"),
}
