"""Where the public data lie that tests and benchmarks read: SFUMATO_DATA says, else ../shared/data beside the repository."""

from __future__ import annotations

import os
from pathlib import Path

PUBLIC_DATA = Path(os.environ.get("SFUMATO_DATA", Path(__file__).parents[3] / "shared" / "data"))
