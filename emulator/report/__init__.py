"""What a person reads after a run. Works on plain data (a summary as in summary.json)."""
from emulator.report.classes import classes_side_by_side as classes_side_by_side
from emulator.report.breakdown import breakdowns as breakdowns
from emulator.report.collectives import collectives as collectives
from emulator.report.cross import cross as cross
from emulator.report.cross import svg as svg
from emulator.report.heatmap import heatmap as heatmap
from emulator.report.jobs import background as background
from emulator.report.jobs import compared as compared
from emulator.report.jobs import jobs_table as jobs_table
from emulator.report.one import headline as headline
from emulator.report.one import result as result
from emulator.report.several import comparison as comparison
from emulator.report.several import spread as spread
from emulator.report.tables import show as show
