"""Models on the Hugging Face hub: found, or refused within seconds and in one line.

Loading a model tries a hub that does not answer again and again, for most of a minute. So one request goes first.
"""

import time
from pathlib import Path
from typing import Any

from vpo.util.errors import InputError, one_line

TIMEOUT = 5.0  # seconds until the hub must answer
WAITS = (0.5, 1.5)  # seconds before another request, where the hub is busy


def loading_options(name: str) -> dict[str, Any]:
    """What to pass to `from_pretrained` for a model on this disk, or by its name on the hub.

    A hub that cannot be reached is not asked again: a model that was loaded before comes from the cache.
    """
    if Path(name).exists():
        return {}
    from huggingface_hub import constants, try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    try:
        cached = isinstance(try_to_load_from_cache(name, "config.json"), str)
    except HFValidationError:
        raise InputError(f"{name}: no such folder, and no name on the hub, such as OWNER/NAME") from None
    if constants.HF_HUB_OFFLINE:
        reason = "HF_HUB_OFFLINE is set, and this machine has no copy of it"
    else:
        reason = _unavailable(name)
    if not reason:
        return {}
    if cached:
        return {"local_files_only": True}
    raise InputError(f"{name}: no such folder, and the model cannot be loaded from the hub: {reason}")


def _unavailable(name: str) -> str:
    """Why a model cannot be loaded from the hub, where that is so."""
    from huggingface_hub import constants, get_hf_file_metadata, hf_hub_url
    from huggingface_hub.errors import EntryNotFoundError, GatedRepoError, HfHubHTTPError, RepositoryNotFoundError

    hub = constants.ENDPOINT
    unknown = f"{hub} has no model of this name, or it is private: check the name, or `hf auth login`"
    reason = ""
    for wait in (*WAITS, None):
        try:
            get_hf_file_metadata(hf_hub_url(name, "config.json"), timeout=TIMEOUT)
        except GatedRepoError:
            return f"access to it must be requested at {hub}/{name}, and then `hf auth login`"
        except RepositoryNotFoundError:
            return unknown
        except EntryNotFoundError:
            return "it has no config.json"
        except HfHubHTTPError as error:
            status = error.response.status_code
            if status in (401, 403, 404):  # without the header that says more
                return unknown
            reason = f"{hub} answers with status {status}"
            if status != 429 and status < 500:
                return reason
        except Exception as error:  # of the HTTP library: no network, no such host, refused, too slow
            return f"{hub} cannot be reached ({one_line(error) or type(error).__name__})"
        else:
            return ""
        if wait is not None:
            time.sleep(wait)
    return reason
