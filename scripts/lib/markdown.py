"""Markdown that reads as well in its source as rendered."""


def table(head, lines):
    """Columns are padded to their widest cell."""
    cells = [head] + lines
    width = [max(len(str(line[i])) for line in cells) for i in range(len(head))]

    def row(line):
        return "| " + " | ".join(str(c).ljust(w) for c, w in zip(line, width)) + " |"
    return "\n".join([row(head), "| " + " | ".join("-" * w for w in width) + " |"] + [row(l) for l in lines])
