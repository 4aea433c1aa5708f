"""What each rank of horovod.run() runs: python -m horovod.runner.task. The function comes in a file
that TRAINYARD_FUNCTION names; what it returns goes out as a line that the launcher takes."""

import base64
import os
import runpy
import sys
import traceback

from horovod.common import objects

MARK = b"\x1etrainyard result "  # begins the line; nothing that people print


def main() -> int:
    with open(os.environ["TRAINYARD_FUNCTION"], "rb") as file:
        main_path = objects.load(file)
        if main_path:
            vars(sys.modules["__main__"]).update(runpy.run_path(main_path, run_name="__mp_main__"))
        function, arguments, more = objects.load(file)
    try:
        said, code = (True, function(*arguments, **more)), 0
    except BaseException:
        said, code = (False, traceback.format_exc()), 1
        traceback.print_exc()
    sys.stdout.flush()
    out = sys.stdout.buffer
    out.write(MARK + base64.b64encode(objects.dumps(said)) + b"\n")
    out.flush()
    return code


if __name__ == "__main__":
    sys.exit(main())
