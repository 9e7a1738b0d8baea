"""What an assistant does with a memory: fill a form, remind of what comes, find the way.
Built on the public API; nothing is sent anywhere, and nothing is made up."""

from nyima.services.forms import Filled, Form, fill, read_form
from nyima.services.reminders import Reminder, calendar, upcoming
from nyima.services.travel import Destination, Place, destination
from nyima.services.values import Field

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
