"""What an assistant does with a memory: fill a form, remind of what comes, find the way.
Built on the public API; nothing is sent anywhere, and nothing is made up."""

from nyima.skills.forms import Filled, Form, fill, read_form
from nyima.skills.reminders import Reminder, calendar, upcoming
from nyima.skills.travel import Destination, Place, destination
from nyima.skills.values import Field

__all__ = [
    "Destination",
    "Field",
    "Filled",
    "Form",
    "Place",
    "Reminder",
    "calendar",
    "destination",
    "fill",
    "read_form",
    "upcoming",
]
