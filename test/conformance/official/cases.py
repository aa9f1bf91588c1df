"""What the programs of the Python clients share: the counterpart of `cases.js`."""

import json
import os

URL = os.environ["KIS_URL"]
KEY = os.environ["KIS_API_KEY"]
CLIENT = os.environ["KIS_CLIENT"]
MODEL = "gpt-4o-mini"
EMBEDDING_MODEL = "e5-small-ar-en"
TEXTS = ["Annual leave is thirty days.", "الإجازة السنوية ثلاثون يوما."]
TIMEOUT_S = 4
WEATHER = "thirty-one degrees"


def run_cases(cases):
    """Runs the cases one after the other, and prints what each returned or raised as a line of JSON."""
    for name, run in cases.items():
        try:
            outcome = {"value": run(f"{name}, asked by {CLIENT}")}
        except Exception as error:  # The test says what is wrong with it.
            outcome = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps([name, outcome]), flush=True)


def thrown(run):
    """Returns what the client raises."""
    try:
        run()
    except Exception as error:
        status = getattr(error, "status_code", None)
        return {"name": type(error).__name__, "status": status, "code": read_code(error), "message": str(error)}
    raise RuntimeError("the request succeeded")


def read_code(error):
    """The service's code, where each client puts it."""
    body = getattr(error, "body", None)
    details = body.get("error", {}).get("details", {}) if isinstance(body, dict) else {}
    return details.get("error_code") or getattr(error, "code", None)


def thrown_errors(ask):
    """The three errors that every client must show: of the key, of the model, and of the vendor."""
    return {
        "key": thrown(lambda: ask("kis_live_wrong", MODEL, "chat")),
        "model": thrown(lambda: ask(KEY, "no-such-model", "chat")),
        "vendor": thrown(lambda: ask(KEY, MODEL, f"refused, asked by {CLIENT}")),
    }


def collect(pieces):
    texts = [piece for piece in pieces if piece]
    return {"text": "".join(texts), "pieces": len(texts)}
