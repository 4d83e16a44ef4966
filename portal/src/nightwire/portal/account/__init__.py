"""Sessions of signed-in browsers, and forms with CSRF tokens."""

from nightwire.portal.account.forms import Form, check_csrf_token, csrf_token, local_path, read_form
from nightwire.portal.account.sessions import Sessions

__all__ = ["Form", "Sessions", "check_csrf_token", "csrf_token", "local_path", "read_form"]
