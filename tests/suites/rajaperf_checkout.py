"""A small checkout of our own making with RAJAPerf's conventions: two kernels, a driver, and what CMake leaves of a build.

`Apps_BLEND` has sequential, OpenMP and CUDA variants whose bodies are macros of its header; `Algorithm_SORT` calls a
library in every variant. The driver writes the same three reports as the suite's, and has the same traps.
"""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

SUITE_HPP = """\
#pragma once
#include <chrono>
#include <string>
#include <vector>
#include "config.hpp"
using Real_type = double;
using Real_ptr = Real_type*;
using Index_type = long;
using RepIndex_type = long;
enum VariantID { Base_Seq, Base_OpenMP, Lambda_OpenMP, Base_CUDA };
struct Options {
  std::string kernel, tuning, out = ".";
  std::vector<std::string> variants;
  double factor = 1;
  long passes = 1;
  bool dry = false;
};
class Work {
public:
  virtual ~Work() = default;
  virtual std::string name() const = 0;
  virtual void run(VariantID vid) = 0;
  void startTimer() { begun = std::chrono::steady_clock::now(); }
  void stopTimer() { spent += std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count(); }
  long getRunReps() const { return reps; }
  long getSize() const { return size; }
  double spent = 0;
  long reps = 40, size = 60000, kernels = 2;
  long double checksum = 0;
  bool ran = false;
private:
  std::chrono::steady_clock::time_point begun;
};
"""

CONFIG_HPP = "#define SUITE_ENABLE_OPENMP\n#define SUITE_ENABLE_CUDA\n"

FACTORY_CPP = """\
#include "Factory.hpp"
#include "apps/BLEND.hpp"
#include "algorithm/SORT.hpp"
enum KernelID { Apps_BLEND, Algorithm_SORT, Basic_OTHER };
Work* makeKernel(int id, const Options& run_params) {
  Work* kernel = nullptr;
  switch (id) {
    case Apps_BLEND : {
       kernel = new apps::BLEND(run_params);
       break;
    }
    case Algorithm_SORT : {
       kernel = new algorithm::SORT(run_params);
       break;
    }
    case Basic_OTHER : {
       kernel = new apps::BLEND(run_params);
       break;
    }
  }
  return kernel;
}
"""

BLEND_HPP = """\
#pragma once
#define BLEND_DATA_SETUP \\
  Real_ptr in = m_in.data(); \\
  Real_ptr out = m_out.data(); \\
  const Real_type share = m_share;
#define BLEND_OF(a, b) (share * (a) + (1.0 - share) * (b))
#define BLEND_BODY1 \\
  out[i] = BLEND_OF(in[i], out[i]);
#define BLEND_BODY2 \\
  Real_type next = out[i] * 1.0625; \\
  if (next > 4.0) { \\
    next = next - 3.5; \\
  } \\
  out[i] = next;
#include "common/Suite.hpp"
namespace apps {
class BLEND : public Work {
public:
  explicit BLEND(const Options& run_params);
  std::string name() const override { return "Apps_BLEND"; }
  void run(VariantID vid) override;
  void runSeqVariant(VariantID vid, size_t tune_idx);
  void runOpenMPVariant(VariantID vid, size_t tune_idx);
  void setCudaTuningDefinitions(VariantID vid);
private:
  static const size_t default_gpu_block_size = BLEND_ROW * 16;
  std::vector<Real_type> m_in, m_out;
  Real_type m_share = 0.375;
};
}
"""

BLEND_CPP = """\
#include "BLEND.hpp"
namespace apps {
BLEND::BLEND(const Options& run_params) { size = static_cast<long>(size * run_params.factor); }
void BLEND::run(VariantID vid) {
  m_in.resize(size), m_out.resize(size);
  for (long i = 0; i < size; ++i) m_in[i] = 0.5 + (i * 7919 % 1013) / 1013.0, m_out[i] = 1.0 + i % 17;
  if (vid == Base_Seq) runSeqVariant(vid, 0); else runOpenMPVariant(vid, 0);
  for (long i = 0; i < size; ++i) checksum += m_out[i] * (0.5 + i % 11);
  ran = true;
}
}
"""

BLEND_SEQ_CPP = """\
#include "BLEND.hpp"
namespace apps {
void BLEND::runSeqVariant(VariantID vid, size_t) {
  const RepIndex_type run_reps = getRunReps();
  const Index_type iend = getSize();
  BLEND_DATA_SETUP;
  if (vid == Base_Seq) {
    startTimer();
    for (RepIndex_type irep = 0; irep < run_reps; ++irep) {
      for (Index_type i = 0; i < iend; ++i) {
        BLEND_BODY1;
      }
      for (Index_type i = 0; i < iend; ++i) {
        BLEND_BODY2;
      }
    }
    stopTimer();
  }
}
}
"""

BLEND_OMP_CPP = """\
#include "BLEND.hpp"
namespace apps {
void BLEND::runOpenMPVariant(VariantID vid, size_t) {
#if defined(SUITE_ENABLE_OPENMP) && defined(RUN_OPENMP)
  const RepIndex_type run_reps = getRunReps();
  const Index_type iend = getSize();
  BLEND_DATA_SETUP;
  switch ( vid ) {

    case Base_OpenMP : {

      startTimer();
      for (RepIndex_type irep = 0; irep < run_reps; ++irep) {

        #pragma omp parallel for
        for (Index_type i = 0; i < iend; ++i) {
          BLEND_BODY1;
        }

        #pragma omp parallel for
        for (Index_type i = 0; i < iend; ++i) {
          BLEND_BODY2;  // "}" in a comment
        }

      }
      stopTimer();

      break;
    }

    case Lambda_OpenMP : {
      auto body = [=](Index_type i) { BLEND_BODY1; };
      startTimer();
      for (RepIndex_type irep = 0; irep < run_reps; ++irep) {
        for (Index_type i = 0; i < iend; ++i) body(i);
      }
      stopTimer();
      break;
    }

    default : break;
  }
#endif
}
}
"""

BLEND_CUDA_CPP = """\
#include "BLEND.hpp"
#if defined(SUITE_ENABLE_CUDA)
#define USE_FAST_PATH
namespace apps {

template < size_t block_size >
__launch_bounds__(block_size)
__global__ void blend1(Real_ptr out, Real_ptr in, Real_type share, Index_type iend)
{
  Index_type i = blockIdx.x * block_size + threadIdx.x;
  if (i < iend) {
    BLEND_BODY1;
  }
}

#if defined(USE_FAST_PATH)
template < size_t block_size >
__global__ void blend2(Real_ptr out, Index_type iend)
{
  Index_type i = blockIdx.x * block_size + threadIdx.x;
  if (i < iend) {
    BLEND_BODY2;
  }
}
#else
template < size_t block_size >
__global__ void blend2(Real_ptr out, Index_type iend)
{
  for (Index_type i = threadIdx.x; i < iend; i += block_size) {
    BLEND_BODY2;
  }
}
#endif

template < size_t block_size, typename Lambda >
__global__ void blend_lam(Index_type iend, Lambda body)
{
  Index_type i = blockIdx.x * block_size + threadIdx.x;
  if (i < iend) {
    body(i);
  }
}

template < size_t block_size >
void BLEND::runCudaVariantImpl(VariantID vid)
{
  if ( vid == Base_CUDA ) {
    for (RepIndex_type irep = 0; irep < run_reps; ++irep) {
      launch( (blend1<block_size>), grid_size, out, in, share, iend ); // blend_lam is for the other variant
      launch( (blend2<block_size>), grid_size, out, iend );
    }
  } else if ( vid == Lambda_CUDA ) {
    launch( (blend_lam<block_size, decltype(body)>), grid_size, iend, body );
  }
}

void BLEND::setCudaTuningDefinitions(VariantID vid)
{
  addVariantTuningName(vid, "block_"+std::to_string(block_size));
}

}
#endif
"""

SORT_HPP = """\
#pragma once
#include "common/Suite.hpp"
namespace algorithm {
class SORT : public Work {
public:
  explicit SORT(const Options& run_params) { size = static_cast<long>(size * run_params.factor); }
  std::string name() const override { return "Algorithm_SORT"; }
  void run(VariantID) override { }
};
}
"""

SORT_OMP_CPP = """\
#include "SORT.hpp"
namespace algorithm {
void runOpenMPVariant(VariantID vid) {
  if ( vid == RAJA_OpenMP ) {
    for (RepIndex_type irep = 0; irep < run_reps; ++irep) {
      RAJA::sort(x);
    }
  }
}
}
"""

DRIVER_CPP = r"""
#include <cstdio>
#include <cstring>
#include <fstream>
#include <memory>
#include <sys/stat.h>
#include "common/Factory.hpp"

static Options read(int argc, char** argv) {
  Options o;
  for (int i = 1; i < argc; ++i) {
    std::string word = argv[i];
    if (word == "--dryrun") o.dry = true;
    else if (word == "-k") o.kernel = argv[++i];
    else if (word == "-t") o.tuning = argv[++i];
    else if (word == "--sizefact") o.factor = std::stod(argv[++i]);
    else if (word == "--npasses") o.passes = std::stol(argv[++i]);
    else if (word == "--outdir") o.out = argv[++i];
    else if (word == "-v") while (i + 1 < argc && argv[i + 1][0] != '-') o.variants.push_back(argv[++i]);
  }
  return o;
}

static std::string table(const Work& work) {
  char line[400];
  std::snprintf(line, sizeof line, "%s , %ld , %ld , %ld , %ld , %ld , %ld\n", work.name().c_str(), work.size, work.reps,
                work.kernels, work.size * 8, work.size * 16 * work.kernels - work.size * 8, work.size * 8);
  return std::string("Kernels , Problem size , Reps , Kernels/rep , FLOPS/rep , BytesRead/rep , BytesWritten/rep\n") + line;
}

int main(int argc, char** argv) {
  Options o = read(argc, argv);
  std::unique_ptr<Work> work;
  for (int id = 0; id < 2; ++id) {
    std::unique_ptr<Work> one(makeKernel(id, o));
    if (one->name() == o.kernel) work = std::move(one);
  }
  std::vector<std::string> known;
  for (auto& variant : o.variants) if (variant == "Base_Seq" || variant == "Base_OpenMP") known.push_back(variant);
  if (o.dry) {
    std::puts("Variants and Tunings\n--------");
    for (auto& variant : known) std::printf("%s-default\n", variant.c_str());
    if (work) std::printf("\n%s", table(*work).c_str());
    std::puts("DONE");
    return 0;
  }
  mkdir(o.out.c_str(), 0755);
  std::string prefix = o.out + "/RAJAPerf";
  if (work && !known.empty()) {
    for (long pass = 0; pass < o.passes; ++pass) work->run(known[0] == "Base_Seq" ? Base_Seq : Base_OpenMP);
    std::ofstream time(prefix + "-timing-Average.csv"), kernels(prefix + "-kernels.csv"), sums(prefix + "-checksum.txt");
    char number[60];
    std::snprintf(number, sizeof number, "%.9f", work->spent / o.passes);
    time << "Mean Runtime Report (sec.)  , \nKernel , " << known[0] << "\nKernel , default\n";
    time << work->name() << " , " << number << "\n";
    kernels << "Kernels run\n" << table(*work);
    std::snprintf(number, sizeof number, "%.20Lg", work->checksum);
    sums << "Checksum Report\n" << work->name() << "\n" << known[0] << "-default   " << number << "   0.0000000\n";
  }
  std::puts("DONE");
}
"""
FACTORY_HPP = '#pragma once\n#include "common/Suite.hpp"\nWork* makeKernel(int id, const Options& run_params);\n'

SOURCES = {
    "LICENSE": "Permission is hereby granted, free of charge, to any person",
    "src/common/Suite.hpp": SUITE_HPP,
    "src/common/Factory.hpp": FACTORY_HPP,
    "src/common/RAJAPerfSuite.cpp": FACTORY_CPP,
    "src/apps/ROWS.hpp": "#pragma once\n#define BLEND_ROW 8\n",
    "src/apps/BLEND.hpp": BLEND_HPP.replace("#pragma once\n", '#pragma once\n#include "ROWS.hpp"\n', 1),
    "src/apps/BLEND.cpp": BLEND_CPP,
    "src/apps/BLEND-Seq.cpp": BLEND_SEQ_CPP,
    "src/apps/BLEND-OMP.cpp": BLEND_OMP_CPP,
    "src/apps/BLEND-Cuda.cpp": BLEND_CUDA_CPP,
    "src/algorithm/SORT.hpp": SORT_HPP,
    "src/algorithm/SORT-OMP.cpp": SORT_OMP_CPP,
    "src/algorithm/SORT-Cuda.cpp": SORT_OMP_CPP.replace("OpenMP", "CUDA"),
    "src/Driver.cpp": DRIVER_CPP,
}
COMPILED = ("common/RAJAPerfSuite", "apps/BLEND", "apps/BLEND-Seq", "apps/BLEND-OMP", "Driver")


def make_checkout(folder: Path) -> tuple[Path, Path]:
    """The checkout, and its build folder with the commands of all units, nothing built; the build folder lies in it."""
    checkout, build = folder / "checkout", folder / "checkout" / "build"
    for path, text in SOURCES.items():
        (checkout / path).parent.mkdir(parents=True, exist_ok=True)
        (checkout / path).write_text(text)
    (build / "include").mkdir(parents=True)
    (build / "include" / "config.hpp").write_text(CONFIG_HPP)
    (build / "src/CMakeFiles/raja-perf.exe.dir").mkdir(parents=True)
    (build / "src/options.rsp").write_text(f'-I"{build}/include" -I{checkout}/src/.')
    flags = "-O2 -fopenmp -DRUN_OPENMP"
    units = [(name, f"/usr/bin/g++ {flags} @options.rsp -MD -MF deps/{Path(name).name}.d") for name in COMPILED]
    units += [
        (f"{name}-Cuda", "/opt/cuda/bin/nvcc --options-file options.rsp -arch=sm_90 -x cu")
        for name in ("apps/BLEND", "algorithm/SORT")
    ]
    units += [("algorithm/SORT-OMP", f"/usr/bin/g++ {flags} @options.rsp")]
    entries = [
        {"directory": str(build / "src"), "file": str(checkout / f"src/{name}.cpp"),
         "command": f"{compiler} -o {Path(name).name}.o -c {checkout}/src/{name}.cpp"}
        for name, compiler in units
    ]  # fmt: skip
    (build / "compile_commands.json").write_text(json.dumps(entries))
    (build / "src/CMakeFiles/raja-perf.exe.dir/link.txt").write_text(
        "/usr/bin/g++ -O2 -fopenmp Driver.o -o ../bin/raja-perf.exe ../lib/libapps.a -lm\n"
    )
    return checkout, build


def build_it(build: Path) -> None:
    """What `make` would do in the build folder."""
    (build / "bin").mkdir()
    (build / "lib").mkdir()
    (build / "src/deps").mkdir()
    entries = json.loads((build / "compile_commands.json").read_text())
    for entry in entries:
        if "g++" in entry["command"] and "SORT" not in entry["file"]:
            subprocess.run(entry["command"].split(), cwd=entry["directory"], check=True)
    objects = [f"{Path(name).name}.o" for name in COMPILED if name != "Driver"]
    subprocess.run(["ar", "qc", "../lib/libapps.a", *objects], cwd=build / "src", check=True)
    link = (build / "src/CMakeFiles/raja-perf.exe.dir/link.txt").read_text().split()
    subprocess.run(link, cwd=build / "src", check=True)


def stand_in(build: Path) -> None:
    """An archive, an object and a program that nobody can run, for what is only read."""
    for path in ("bin/raja-perf.exe", "lib/libapps.a", "src/Driver.o"):
        (build / path).parent.mkdir(parents=True, exist_ok=True)
        (build / path).write_bytes(b"")
