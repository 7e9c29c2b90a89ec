"""The colours and the style of the pictures beside the problems."""

BLUE, ORANGE, GREEN, GREY, RED = "#0060a8", "#c85a00", "#2f7d32", "#8a8a8a", "#b00020"
STYLE = {
    "svg.hashsalt": "klopt",
    "svg.fonttype": "none",
    "font.family": "sans-serif",
    "font.size": 10,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "legend.frameon": False,
}
