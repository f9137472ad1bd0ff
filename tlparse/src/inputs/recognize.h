// Recognises the kind of a file by its first bytes, not by its name.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tlparse {

enum class InputKind : std::uint8_t {
  kUnknown,
  kLog,                // structured trace: TORCH_TRACE, libtrace
  kProfile,            // Kineto/Chrome trace; only its reader can tell a profile from other traces
  kRecorderDump,       // flight recorder, pickle or JSON
  kMemorySnapshot,     // of the allocator: torch.cuda.memory._dump_snapshot, pickle or JSON
  kKernelInformation,  // kernel_information.json of an AOTInductor package
  kPackage,            // AOTInductor package: .pt2
  kNsys,               // nsys export --type sqlite
  kTritonparse,        // ndjson
  kTorchLogs,          // text of TORCH_LOGS
  kRunFile,            // run.json of tlparse run
  kNcclRas,            // report of NCCL's RAS subsystem, text or JSON
  kDebugServer,        // stacks by the debug server of torch.distributed
  kExecutionTrace,     // Chakra
  kOwnDatabase,        // a database that tlparse wrote
};

// Name of the kind for messages: "a profile", "a flight-recorder dump", …
std::string_view Describe(InputKind kind);

// Number of bytes that suffice to recognise a file.
inline constexpr std::size_t kRecognizeBytes = 64 << 10;

// `head` is the first kRecognizeBytes (or all) of the file, decompressed. kUnknown: none of these.
InputKind Recognize(std::string_view head);

// The same for the file `path`, plain, gzip or zstd. What can be decoded of damaged data is enough.
// kNotFound or kIo if it cannot be read.
Result<InputKind> RecognizeFile(const std::string& path);

}  // namespace tlparse
