# SPDX-License-Identifier: BSD-3-Clause
"""The slow reference of `pinwheel goal run`: same options, same output.

    simulate.py FILE [--json] [--model=pinwheel|loggopsim] [-L v -o v -g v -G v -O v -S v]
                [--noise v --seed v] [--network v --packet v --buffer v --link-rate v
                 --hop-latency v --cable-latency v --switching v --routing v]
"""

import argparse
import sys

sys.dont_write_bytecode = True

import loggopsim  # noqa: E402
import noise  # noqa: E402
import parameters  # noqa: E402
import pinwheel  # noqa: E402
import schedule  # noqa: E402


NETWORK = ("network", "packet", "buffer", "link-rate", "hop-latency", "cable-latency", "switching",
           "routing")


def finish_ps(ranks, model, texts):
    """Finish times in ps. `texts` are parameters, and long options, as on the command line."""
    p = parameters.parse({name: text for name, text in texts.items() if len(name) == 1})
    if model == "loggopsim":
        return [1000 * ns for ns in loggopsim.finish_times(ranks, p)]
    net = {name: texts[name] for name in (*NETWORK, "seed") if name in texts}
    detours = noise.Noise(texts["noise"], int(texts.get("seed", "1"))) if "noise" in texts else None
    return pinwheel.finish_times(ranks, p, detours, net if "network" in net else None)


def nanoseconds(ps):
    """The time in ns, exactly, with no more decimals than it needs."""
    return f"{ps // 1000}.{ps % 1000:03}".rstrip("0").rstrip(".")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--model", choices=("pinwheel", "loggopsim"), default="pinwheel")
    for name in parameters.DEFAULTS:
        parser.add_argument("-" + name, default=parameters.DEFAULTS[name])
    for name in ("noise", "seed") + NETWORK:
        parser.add_argument("--" + name)
    args = vars(parser.parse_args())
    names = (*parameters.DEFAULTS, "noise", "seed", *NETWORK)
    texts = {name: args[name.replace("-", "_")] for name in names}
    try:
        times = finish_ps(schedule.read(args["file"]), args["model"],
                          {name: text for name, text in texts.items() if text is not None})
    except parameters.ParameterError as error:
        print(error, file=sys.stderr)
        return 2
    except (parameters.SimulationError, schedule.ScheduleError) as error:
        print(error, file=sys.stderr)
        return 1
    words = [nanoseconds(ps) for ps in times]
    print('{"finish_ns": [' + ", ".join(words) + "]}" if args["json"] else " ".join(words))
    return 0


if __name__ == "__main__":
    sys.exit(main())
