"""What happens to a fabric while it is measured: links and switches that fail, heal, slow down or lose.

`spec` reads events, `check` says whether they can be (pure); `conductor` performs them in the sandbox through
`acts`; `aftermath` says what followed (pure).
"""
from emulator.events.spec import Event as Event
from emulator.events.spec import parse_events as parse_events
