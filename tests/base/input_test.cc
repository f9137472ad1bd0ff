#include "base/input.h"

#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "tests/base/temp_directory.h"
#include "tests/catch2.h"

namespace tlparse {
namespace {

std::string Gzip(std::string_view bytes) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 6, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string result(deflateBound(&stream, bytes.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(result.data());
  stream.avail_out = static_cast<uInt>(result.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  result.resize(stream.total_out);
  deflateEnd(&stream);
  return result;
}

std::string Zstd(std::string_view bytes, bool with_checksum = true) {
  ZSTD_CCtx* const context = ZSTD_createCCtx();
  ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, with_checksum);
  std::string result(ZSTD_compressBound(bytes.size()), '\0');
  const std::size_t size =
      ZSTD_compress2(context, result.data(), result.size(), bytes.data(), bytes.size());
  ZSTD_freeCCtx(context);
  REQUIRE_FALSE(ZSTD_isError(size));
  result.resize(size);
  return result;
}

// Text that compresses about as a log does.
std::string LogLikeText(std::size_t size) {
  std::mt19937 random(5);
  std::string text;
  while (text.size() < size) {
    text += "V1121 08:30:01." + std::to_string(random()) + " 4242 torch/_dynamo/x.py:10] {}\n";
  }
  text.resize(size);
  return text;
}

struct Outcome {
  std::string bytes;
  std::optional<Error> error;
};

Outcome ReadAll(InputStream& stream, std::size_t capacity) {
  Outcome outcome;
  std::vector<char> buffer(capacity);
  for (;;) {
    const Result<std::size_t> count = stream.Read(buffer.data(), buffer.size());
    if (!count) {
      outcome.error = count.error();
      // The error stays.
      const Result<std::size_t> again = stream.Read(buffer.data(), buffer.size());
      REQUIRE_FALSE(again);
      CHECK(again.error().message == count.error().message);
      return outcome;
    }
    if (*count == 0) return outcome;
    REQUIRE(*count <= capacity);
    outcome.bytes.append(buffer.data(), *count);
  }
}

Outcome ReadFile(const std::string& path, std::string_view compression,
                 std::size_t capacity = 100'000) {
  auto stream = OpenInput(path);
  REQUIRE(stream);
  CHECK((*stream)->compression() == compression);
  Outcome outcome = ReadAll(**stream, capacity);
  if (!outcome.error) CHECK((*stream)->compressed_bytes_read() == (*stream)->total_bytes());
  return outcome;
}

TEST_CASE("OpenInput recognises plain, gzip and zstd files by their first bytes", "[input]") {
  const TempDirectory directory;
  const std::string text = LogLikeText(1'500'000);
  for (const std::size_t capacity :
       {std::size_t{1000}, std::size_t{131072}, std::size_t{4000000}}) {
    CHECK(ReadFile(directory.Write("a.gz", text), "none", capacity).bytes == text);
    CHECK(ReadFile(directory.Write("b.log", Gzip(text)), "gzip", capacity).bytes == text);
    CHECK(ReadFile(directory.Write("c", Zstd(text)), "zstd", capacity).bytes == text);
  }
  const std::string small = "\x1f";
  CHECK(ReadFile(directory.Write("small", small), "none", 1).bytes == small);
  CHECK(ReadFile(directory.Write("empty", ""), "none").bytes.empty());
  CHECK(ReadFile(directory.Write("empty.gz", Gzip("")), "gzip").bytes.empty());
  CHECK(ReadFile(directory.Write("empty.zst", Zstd("")), "zstd").bytes.empty());
}

TEST_CASE("OpenInput reads members and frames that follow one another", "[input]") {
  const TempDirectory directory;
  const std::string a = LogLikeText(300'000), b = "short\n", c = LogLikeText(70'000);
  const std::string skippable("\x50\x2a\x4d\x18\x05\0\0\0hello", 13);
  for (const std::size_t capacity : {std::size_t{77}, std::size_t{1 << 20}}) {
    const std::string gzip = Gzip(a) + Gzip("") + Gzip(b) + Gzip(c);
    CHECK(ReadFile(directory.Write("x", gzip), "gzip", capacity).bytes == a + b + c);
    const Outcome padded = ReadFile(directory.Write("x", gzip + std::string(9000, '\0')), "gzip");
    CHECK(padded.bytes == a + b + c);
    CHECK_FALSE(padded.error);
    const std::string zstd = skippable + Zstd(a) + Zstd("") + skippable + Zstd(b, false) + Zstd(c);
    const Outcome frames = ReadFile(directory.Write("x", zstd), "zstd", capacity);
    CHECK(frames.bytes == a + b + c);
    CHECK_FALSE(frames.error);
  }
}

TEST_CASE("Cut compressed input delivers a prefix, then one error", "[input]") {
  const TempDirectory directory;
  const std::string text = LogLikeText(600'000);
  for (const bool is_gzip : {true, false}) {
    const std::string whole = is_gzip ? Gzip(text) : Zstd(text);
    for (std::size_t size = 8; size < whole.size(); size += whole.size() / 37) {
      INFO((is_gzip ? "gzip " : "zstd ") << size << " of " << whole.size());
      const Outcome outcome =
          ReadFile(directory.Write("cut", whole.substr(0, size)), is_gzip ? "gzip" : "zstd", 4096);
      REQUIRE(outcome.error);
      CHECK(outcome.error->code == ErrorCode::kDamagedInput);
      CHECK_THAT(outcome.error->message, Catch::Matchers::Contains("cut"));
      CHECK(text.starts_with(outcome.bytes));
      // What was complete is there: all but the last block (zstd's hold 128 kB).
      const double part = static_cast<double>(size) / static_cast<double>(whole.size());
      CHECK(static_cast<double>(outcome.bytes.size()) > part * 600'000 - 2 * 131'072);
    }
  }
}

TEST_CASE("Damaged compressed input delivers what comes before the damage", "[input]") {
  const TempDirectory directory;
  const std::string text = LogLikeText(1'000'000);
  for (const bool is_gzip : {true, false}) {
    const std::string first = is_gzip ? Gzip(text) : Zstd(text);
    std::string damaged = first + first;
    // Far enough into the second copy that its first blocks are good.
    for (std::size_t i = 0; i < 16; ++i) damaged[first.size() + first.size() * 3 / 4 + i] ^= 0x5a;
    for (const std::size_t capacity : {std::size_t{1000}, std::size_t{8 << 20}}) {
      const Outcome outcome =
          ReadFile(directory.Write("damaged", damaged), is_gzip ? "gzip" : "zstd", capacity);
      INFO((is_gzip ? "gzip" : "zstd") << " capacity " << capacity);
      REQUIRE(outcome.error);
      CHECK(outcome.error->code == ErrorCode::kDamagedInput);
      CHECK(outcome.bytes.size() > text.size() + 400'000);
      CHECK(outcome.bytes.substr(0, text.size() + 400'000) == text + text.substr(0, 400'000));
    }
    const Outcome followed =
        ReadFile(directory.Write("followed", first + "plain text"), is_gzip ? "gzip" : "zstd");
    CHECK(followed.bytes == text);
    REQUIRE(followed.error);
    CHECK(followed.error->code == ErrorCode::kDamagedInput);
  }
}

TEST_CASE("Data that was decoded to its end is not said to be lost for its checksum", "[input]") {
  const TempDirectory directory;
  const std::string text = LogLikeText(100'000);
  for (const bool is_gzip : {true, false}) {
    std::string whole = is_gzip ? Gzip(text) : Zstd(text);
    const std::string next = whole;
    whole[whole.size() - (is_gzip ? 8 : 4)] ^= 0x40;  // of the checksum
    const Outcome outcome = ReadFile(directory.Write("sum", whole), is_gzip ? "gzip" : "zstd");
    CHECK(outcome.bytes == text);
    REQUIRE(outcome.error);
    CHECK(outcome.error->message.find("all of it was decoded and is kept") != std::string::npos);
    const Outcome first =
        ReadFile(directory.Write("first", whole + next), is_gzip ? "gzip" : "zstd");
    CHECK(first.bytes == text);
    REQUIRE(first.error);
    CHECK(first.error->message.find("has a wrong checksum; what came before is kept") !=
          std::string::npos);
  }
}

// A frame of one raw block whose header asks for a window of 2^window_log bytes (RFC
// 8878, 3.1.1.1.2).
std::string ZstdWithWindow(int window_log, const std::string& content) {
  std::string frame = "\x28\xb5\x2f\xfd";
  frame += '\0';
  frame += static_cast<char>((window_log - 10) << 3);
  const std::size_t header = content.size() << 3 | 1;  // the last block, raw
  for (int shift = 0; shift < 24; shift += 8) frame += static_cast<char>(header >> shift & 0xff);
  return frame + content;
}

TEST_CASE("A zstd frame that asks for too large a window is an error that says what to do",
          "[input]") {
  const TempDirectory directory;
  CHECK(ReadFile(directory.Write("large", ZstdWithWindow(27, "text")), "zstd").bytes == "text");
  const Outcome outcome =
      ReadFile(directory.Write("too_large", Zstd("before ") + ZstdWithWindow(28, "text")), "zstd");
  CHECK(outcome.bytes == "before ");
  REQUIRE(outcome.error);
  CHECK(outcome.error->code == ErrorCode::kDamagedInput);
  CHECK(outcome.error->message.find("128 MiB; decompress it first") != std::string::npos);
}

TEST_CASE("Random bytes behind a magic never crash", "[input]") {
  const TempDirectory directory;
  std::mt19937 random(9);
  for (int round = 0; round < 300; ++round) {
    std::string bytes = round % 2 ? "\x1f\x8b\x08" : "\x28\xb5\x2f\xfd";
    for (std::size_t i = random() % 200; i > 0; --i) bytes.push_back(static_cast<char>(random()));
    auto stream = OpenInput(directory.Write("random", bytes));
    REQUIRE(stream);
    ReadAll(**stream, 1 + random() % 5000);
  }
}

TEST_CASE("OpenInput tells what cannot be opened", "[input]") {
  const TempDirectory directory;
  const auto missing = OpenInput(directory.path() + "/missing.log");
  REQUIRE_FALSE(missing);
  CHECK(missing.error().code == ErrorCode::kNotFound);
  CHECK_THAT(missing.error().message, Catch::Matchers::Contains("missing.log"));
  const auto folder = OpenInput(directory.path());
  REQUIRE_FALSE(folder);
  CHECK(folder.error().code == ErrorCode::kIo);
}

TEST_CASE("Standard input may be a pipe, also a compressed one", "[input]") {
  const std::string text = LogLikeText(400'000);
  for (const std::string& bytes : {text, Gzip(text), Zstd(text)}) {
    int ends[2];
    REQUIRE(::pipe(ends) == 0);
    const int saved = ::dup(STDIN_FILENO);
    REQUIRE(saved >= 0);
    REQUIRE(::dup2(ends[0], STDIN_FILENO) == 0);
    ::close(ends[0]);
    std::thread writer([&] {
      std::string_view rest = bytes;
      while (!rest.empty()) {
        const ssize_t count =
            ::write(ends[1], rest.data(), std::min<std::size_t>(rest.size(), 777));
        if (count <= 0) break;
        rest.remove_prefix(static_cast<std::size_t>(count));
      }
      ::close(ends[1]);
    });
    {
      const auto stream = OpenInput("-");
      REQUIRE(stream);
      CHECK((*stream)->total_bytes() == -1);
      CHECK(ReadAll(**stream, 5000).bytes == text);
      CHECK((*stream)->compressed_bytes_read() == static_cast<std::int64_t>(bytes.size()));
    }
    writer.join();
    ::dup2(saved, STDIN_FILENO);
    ::close(saved);
  }
}

}  // namespace
}  // namespace tlparse
