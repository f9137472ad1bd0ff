#include "import/run_state.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <ctime>
#include <filesystem>
#include <random>

#include "base/version.h"
#include "queries/import/run_state.h"
#include "rows/core.h"

namespace tlparse {

std::string DirectoryOf(const std::string& path) {
  const std::string directory = std::filesystem::path(path).parent_path().string();
  return directory.empty() ? "." : directory;
}

std::uint64_t RandomSeed() {
  std::random_device device;
  return static_cast<std::uint64_t>(device()) << 32 | device();
}

namespace {

// Of version 4.
std::string RandomUuid() {
  const std::uint64_t high = (RandomSeed() & ~0xF000ULL) | 0x4000ULL;
  const std::uint64_t low = (RandomSeed() & ~(0xC0ULL << 56)) | (0x80ULL << 56);
  const std::string digits = fmt::format("{:016x}{:016x}", high, low);
  return digits.substr(0, 8) + '-' + digits.substr(8, 4) + '-' + digits.substr(12, 4) + '-' +
         digits.substr(16, 4) + '-' + digits.substr(20);
}

}  // namespace

Result<std::optional<std::int64_t>> FindRunId(Database& database, const std::string& name) {
  ASSIGN_OR_RETURN(const FirstRow<RunToAdd> run, First(Query<RunToAdd>(database, {.name = name})));
  return run ? std::optional(run->id) : std::nullopt;
}

void AddRunRow(std::int64_t id, const std::string& name, RowBatch& rows) {
  rows.Add(
      RunRow{.id = id,
             .name = name,
             .created_at = fmt::format("{:%Y-%m-%dT%H:%M:%SZ}", fmt::gmtime(std::time(nullptr))),
             .tool_version = kVersion,
             .uuid = RandomUuid()});
}

Result<std::int64_t> LoadPayloads(Database& database, PayloadIndex& index) {
  QueryRows<PayloadHash> hashes = Query<PayloadHash>(database);
  RETURN_IF_ERROR(index.AddSortedRun([&](PayloadIndex::Entry& entry) {
    if (!hashes.Next()) return false;
    const std::optional<Md5Digest> digest = ParseMd5Hex(hashes.row().hash);
    if (!digest) return false;
    entry = {*digest, 0, static_cast<std::uint32_t>(hashes.row().id)};
    return true;
  }));
  if (const std::unique_ptr<Error> error = hashes.TakeError())
    return tl::unexpected<Error>(std::move(*error));
  ASSIGN_OR_RETURN(const std::int64_t last, database.QueryInt("SELECT max(id) FROM payload_row"));
  return last + 1;
}

}  // namespace tlparse
