"""All faults (fault.py) by name."""

import faults_differences  # noqa: F401
import faults_ends  # noqa: F401
import faults_waits  # noqa: F401
from fault import FAULTS, INPUTS, fault, seen  # noqa: F401

fault("none", "nothing", sees=seen(), place="", is_harmless=True)
