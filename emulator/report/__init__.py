"""What a person reads after a run. Works on plain data (a summary as in summary.json)."""
from emulator.report.classes import classes_side_by_side as classes_side_by_side
from emulator.report.one import headline as headline
from emulator.report.one import result as result
from emulator.report.several import comparison as comparison
from emulator.report.several import spread as spread
from emulator.report.tables import show as show
