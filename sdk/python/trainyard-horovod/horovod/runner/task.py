"""The program of each rank of horovod.run(): python -m horovod.runner.task. TRAINYARD_FUNCTION
names the file with the pickled function; the result is printed as a line for the launcher."""

import base64
import os
import runpy
import sys
import traceback

from horovod.common import objects

MARK = b"\x1etrainyard result "  # the start of the line; scripts do not print it


def main() -> int:
    with open(os.environ["TRAINYARD_FUNCTION"], "rb") as file:
        main_path = objects.load(file)
        if main_path:
            vars(sys.modules["__main__"]).update(runpy.run_path(main_path, run_name="__mp_main__"))
        function, arguments, more = objects.load(file)
    try:
        result, code = (True, function(*arguments, **more)), 0
    except BaseException:
        result, code = (False, traceback.format_exc()), 1
        traceback.print_exc()
    sys.stdout.flush()
    out = sys.stdout.buffer
    out.write(MARK + base64.b64encode(objects.dumps(result)) + b"\n")
    out.flush()
    return code


if __name__ == "__main__":
    sys.exit(main())
