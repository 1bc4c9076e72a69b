#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The plan of a run beside the memory that the same run takes.

    bench/plan/measure.py PROGRAM MODEL... [--rounds 3] [--json FILE]

For each model and configuration: `mica plan --json`, then a run that fills the context. The last
configuration streams weights from the file, with three quarters of what the first one needs. Printed are the
planned peak, the measured peak resident memory (the median of the rounds: which pages of program and
libraries are resident changes from run to run by half a MiB), the difference, and the bytes that the process
would have to be booked with for a difference of zero. Mapped weights count in whole, though a run touches
only the rows of the embedding that it needs. Standard library only."""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys

CONFIGURATIONS = [
    [],
    ["--chunk", "64", "-ctk", "q8_0", "-ctv", "q8_0"],
    ["--chunk", "256", "--kv", "contiguous"],
    ["--weights", "streamed", "--chunk", "64", "--memory", "three quarters"],
]


def planned(program, model, flags):
    done = subprocess.run([program, "plan", model, "--json", *flags], capture_output=True, text=True)
    if done.returncode not in (0, 4):
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def measured(program, model, tokens, flags):
    """Peak resident bytes of a run that reads `tokens` tokens, as the run itself says: wait4() would add this
    script, whose memory a child has until it becomes the program."""
    argv = [program, "bench", model, "-p", str(tokens), "-n", "0", "-r", "1", "-o", "json", *flags]
    done = subprocess.run(argv, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr)
    return json.loads(done.stdout)[0]["peak_bytes"]


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("program")
    parser.add_argument("models", nargs="+")
    parser.add_argument("--json", help="write the rows to this file")
    parser.add_argument("--contexts", default="256,512", help="tokens of context, separated by commas")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    rows = []
    print(f"{'model':20} {'flags':66} {'n_ctx':>6} {'planned':>9} {'measured':>9} {'off':>7} {'process':>8} "
          f"  (MiB)")
    for model in args.models:
        for n_ctx in map(int, args.contexts.split(",")):
            whole = planned(args.program, model, ["-c", str(n_ctx)])["peak_bytes"]
            for flags in CONFIGURATIONS:
                flags = [f"{whole * 3 // 4}" if flag == "three quarters" else flag for flag in flags] + ["-c",
                                                                                                         str(n_ctx)]
                plan = planned(args.program, model, flags)
                peak = statistics.median(measured(args.program, model, n_ctx, flags)
                                         for _ in range(args.rounds))
                row = {
                    "model": os.path.basename(model),
                    "flags": " ".join(flags),
                    "n_ctx": n_ctx,
                    "planned_bytes": plan["peak_bytes"],
                    "measured_bytes": peak,
                    "difference": (plan["peak_bytes"] - peak) / peak,
                    "process_bytes": peak - plan["peak_bytes"] + plan["accounts"]["process"],
                    "accounts": plan["accounts"],
                }
                rows.append(row)
                mib = 1 << 20
                print(
                    f"{row['model'][:20]:20} {row['flags'][:66]:66} {n_ctx:6} "
                    f"{row['planned_bytes'] / mib:9.1f} "
                    f"{peak / mib:9.1f} {100 * row['difference']:+6.1f}% {row['process_bytes'] / mib:8.1f}",
                    flush=True,
                )
    if args.json:
        with open(args.json, "w") as file:
            json.dump({"machine": platform.processor() or platform.machine(), "rows": rows}, file, indent=1)
            file.write("\n")


if __name__ == "__main__":
    main()
