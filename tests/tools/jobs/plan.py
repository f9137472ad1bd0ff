"""One combination of shape, fault and inputs, with all that its seed decides."""

import os
import zlib

import names
import shapes
import template

HERE = os.path.dirname(os.path.abspath(__file__))
BASE = {
    "PATH": "/usr/bin:/bin",
    "HOME": "/root",
    "LC_ALL": "C.UTF-8",
    "OMP_NUM_THREADS": "1",
    "TORCHINDUCTOR_VEC_ISA_OK": "0",
    "TORCHINDUCTOR_COMPILE_THREADS": "1",
    "CXX": "/rec/cxx_store.sh",
    "CXX_STORE": "/rec/store",
    "PYTHONUNBUFFERED": "1",
}


class Plan:
    """One combination with all that its seed decides."""

    def __init__(self, shape, fault, inputs, seed):
        self.shape, self.fault, self.inputs, self.seed = shape, fault, inputs, seed
        self.name = f"{shape.name}__{fault.name}__{inputs}" + (f"__{seed}" if seed else "")
        number = zlib.crc32(f"{shape.name}/{fault.name}/{inputs}/{seed}".encode())
        self.names = names.Names(number)
        draw = self.names.random
        self.world = draw.choice(shape.worlds)
        points = list(fault.plant) or ["any"]
        where = next(
            (shape.options[f"victims {point}"] for point in points if f"victims {point}" in shape.options),
            shape.options.get("victims", "all"),
        )
        self.victim = draw.choice(shapes.ranks_of(where, self.world))
        self.roles = shape.roles(self.world)
        self.notice_s = draw.choice([0.1, 0.1, 3.0, 8.0])
        self.shares_cache = (
            draw.random() < 0.3 and not fault.launch.get("warm") and not fault.launch.get("tiny_disk")
        )
        self.launches = int(shape.options.get("launches", 1))
        self.recovers = bool(shape.options.get("shrinks") or shape.options.get("retries"))
        self.struck = 0 if self.recovers else self.launches - 1  # the launch in which the fault is
        self.folder = f"/rec/job{number:08x}"
        self.draw_numbers(draw, number)
        self.render()

    def draw_numbers(self, draw, number):
        names = self.names
        names["victim"], names["seed"] = self.victim, number % 1000
        names["group_of_sync"] = self.shape.options.get("group", "dist.group.WORLD")
        if self.fault.early:
            names["when"] = 0
        if "steps" in self.fault.launch:
            names["steps"] = self.fault.launch["steps"]
        for keys, choices in self.fault.numbers.items():
            chosen = draw.choice(choices)
            for one, value in zip(keys.split(","), chosen if isinstance(chosen, tuple) else (chosen,)):
                names[one] = value
        is_pair = any("x, y = $load" in text for text in self.shape.files.values())
        names["crop"] = "x, y = x[:-2], y[:-2]" if is_pair else "x = x[:-2]"

    def render(self):
        condition = "RANK == $victim" + (f" and ATTEMPT == {self.struck}" if self.launches > 1 else "")
        snippets = {
            point: text.replace("RANK == $victim", condition) for point, text in self.fault.plant.items()
        }
        missing = set(snippets) - self.shape.points
        if missing:
            raise ValueError(f"{self.name}: the shape has no point {missing}")
        self.files, self.marks = {}, {}
        for file_key, text in self.shape.files.items():
            name = self.names[file_key] + ".py"
            self.files[name], marks = template.render(text, self.names, snippets, name)
            for mark, places in marks.items():
                self.marks.setdefault(mark, []).extend(places)
        with open(os.path.join(HERE, "rig.py.tmpl"), encoding="utf-8") as file:
            self.files[self.names["rig_file"] + ".py"] = file.read()
        self.train = self.names["train_file"] + ".py"

    def fill(self, groups):
        return [[template.fill(text, self.names) for text in group] for group in groups]

    def environment(self, launch, trace="logs"):
        environment = {
            **BASE,
            "TORCH_TRACE": f"{self.folder}/{trace}",
            "JOB_OUT": self.folder,
            "JOB_ATTEMPT": str(launch),
            "TMPDIR": f"{self.folder}/tmp",
            "JOB_TIMEOUT": str(self.fault.launch.get("timeout_s", 300)),
        }
        if self.inputs in ("dumps", "profiles"):
            environment["JOB_DUMPS"] = self.folder + "/fr"
        if self.inputs == "profiles":
            environment["JOB_PROFILES"] = self.folder
        return environment

    def rank_environment(self, rank, world, is_struck, trace):
        per_node = int(self.shape.options.get("ranks of a node", world))
        environment = {
            "RANK": str(rank),
            "WORLD_SIZE": str(world),
            "LOCAL_RANK": str(rank % per_node),
            "GROUP_RANK": str(rank // per_node),
            "TORCHINDUCTOR_CACHE_DIR": f"{self.folder}/cache" + ("" if self.shares_cache else f"/{rank}"),
        }
        if per_node < world:
            environment["TORCH_TRACE"] = f"{self.folder}/{trace}/node{rank // per_node}"
        if is_struck:
            environment.update(
                {
                    template.fill(name, self.names): value and template.fill(value, self.names)
                    for name, value in self.fault.environment.items()
                }
            )
            if self.fault.launch.get("tiny_disk"):
                environment.update(
                    TORCHINDUCTOR_CACHE_DIR=f"{self.folder}/full/cache", TMPDIR=f"{self.folder}/full"
                )
        return environment

    def job(self, launch, strikes=True, trace="logs"):
        """What launch.py is asked to run."""
        world = self.world - (1 if self.shape.options.get("shrinks") and launch else 0)
        common = self.environment(launch, trace)
        ranks = []
        for rank in range(world):
            own = self.rank_environment(
                rank, world, strikes and rank == self.victim and launch == self.struck, trace
            )
            merged = {name: value for name, value in {**common, **own}.items() if value is not None}
            ranks.append(
                {
                    "rank": rank,
                    "env": merged,
                    "fresh": bool(self.fault.fresh or self.shape.options.get("fresh")),
                }
            )
        if self.shape.options.get("spawns"):
            outer = {
                name: value
                for name, value in ranks[0]["env"].items()
                if name not in ("RANK", "WORLD_SIZE", "LOCAL_RANK")
            }
            outer.update(JOB_WORLD=str(world), TORCHINDUCTOR_CACHE_DIR=f"{self.folder}/cache")
            ranks = [{"rank": 0, "env": outer}]
        job = {
            "out": self.folder,
            "program": f"{self.folder}/src/{self.train}",
            "directory": f"{self.folder}/src",
            "env": {},
            "ranks": ranks,
            "notice_s": self.notice_s,
            "settle_s": 45.0 if self.fault.ends == "well" else 7.0,
            "limit_s": 400,
            "preempt_rank": self.victim,
        }
        job["settle_s"] = 30.0 if "timeout_s" in self.fault.launch else job["settle_s"]
        job.update(
            {name: self.fault.launch[name] for name in ("preempt_after_s",) if name in self.fault.launch}
        )
        return job
