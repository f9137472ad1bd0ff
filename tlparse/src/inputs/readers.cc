// Which reader reads what.

#include "inputs/reader.h"

namespace tlparse {
namespace {

struct ReaderOfKind {
  InputKind kind;
  std::unique_ptr<RuntimeReader> (*make)();
};
constexpr ReaderOfKind kReaders[] = {
    {InputKind::kProfile, &MakeKinetoReader},
    {InputKind::kRecorderDump, &MakeRecorderReader},
    {InputKind::kMemorySnapshot, &MakeMemoryReader},
    {InputKind::kPackage, &MakePackageReader},
    {InputKind::kKernelInformation, &MakeKernelInformationReader},
    {InputKind::kNsys, &MakeNsysReader},
    {InputKind::kTritonparse, &MakeTritonparseReader},
    {InputKind::kTorchLogs, &MakeTorchLogsReader},
    {InputKind::kRunFile, &MakeRunFileReader},
    {InputKind::kNcclRas, &MakeNcclRasReader},
    {InputKind::kDebugServer, &MakeDebugServerReader},
};

}  // namespace

std::unique_ptr<RuntimeReader> MakeRuntimeReader(InputKind kind) {
  for (const ReaderOfKind& reader : kReaders) {
    if (reader.kind == kind) return reader.make();
  }
  return nullptr;
}

bool HasRuntimeReader(InputKind kind) {
  for (const ReaderOfKind& reader : kReaders) {
    if (reader.kind == kind) return true;
  }
  return false;
}

std::vector<InputKind> RuntimeKinds() {
  std::vector<InputKind> kinds;
  for (const ReaderOfKind& reader : kReaders) kinds.push_back(reader.kind);
  return kinds;
}

}  // namespace tlparse
