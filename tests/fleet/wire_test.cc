// What goes to a server and comes back: values, quotes, retries.
#include <zlib.h>

#include <limits>

#include "base/gzip_body.h"
#include "fleet/clickhouse_client.h"
#include "fleet/row_binary.h"
#include "fleet/server_tables.h"
#include "fleet/sql_quote.h"
#include "tests/catch2.h"

namespace tlparse {
namespace {

std::string Inflate(const std::string& gzip) {
  z_stream z{};
  REQUIRE(inflateInit2(&z, 31) == Z_OK);
  std::string plain(1 << 20, '\0');
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(gzip.data()));
  z.avail_in = static_cast<uInt>(gzip.size());
  z.next_out = reinterpret_cast<Bytef*>(plain.data());
  z.avail_out = static_cast<uInt>(plain.size());
  CHECK(inflate(&z, Z_FINISH) == Z_STREAM_END);
  plain.resize(z.total_out);
  inflateEnd(&z);
  return plain;
}

TEST_CASE("RowBinary: values are written as ClickHouse reads them") {
  std::string out;
  RowBinaryWriter write(out);
  write.UInt8(7);
  write.Int64(-2);
  write.Text("ab");
  write.NullFlag(true);
  CHECK(out == std::string("\x07\xfe\xff\xff\xff\xff\xff\xff\xff\x02"
                           "ab\x01",
                           13));
  out.clear();
  write.Hash({0x8899aabbccddeeffULL, 0x0011223344556677ULL});
  CHECK(out == std::string("\x00\x11\x22\x33\x44\x55\x66\x77\x88\x99\xaa\xbb\xcc\xdd\xee\xff", 16));
  out.clear();
  write.Length(300);
  CHECK(out == "\xac\x02");
}

TEST_CASE("RowBinary: what was written is read") {
  std::string out;
  RowBinaryWriter write(out);
  const Uuid uuid = *ParseUuid("61f0c404-5cb3-11e7-907b-a6006ad3dba0");
  const std::string text(70000, 'x');
  write.UInt16(65535);
  write.Int64(std::numeric_limits<std::int64_t>::min());
  write.Real(-0.5);
  write.WriteUuid(uuid);
  write.Hash({1, 2});
  write.Text(text);
  RowBinaryReader read(out);
  CHECK(read.UInt16() == 65535);
  CHECK(read.Int64() == std::numeric_limits<std::int64_t>::min());
  CHECK(read.Real() == -0.5);
  CHECK(ToText(read.ReadUuid()) == "61f0c404-5cb3-11e7-907b-a6006ad3dba0");
  CHECK(read.Hash() == Hash128{1, 2});
  CHECK(read.Text() == text);
  CHECK(read.at_end());
  CHECK_FALSE(read.is_short());
  CHECK_FALSE(ParseUuid("61f0c404-5cb3-11e7-907b-a6006ad3dbaz"));
}

TEST_CASE("RowBinary: bytes that end early or lie are noticed") {
  std::string out;
  RowBinaryWriter(out).Text("hello");
  for (std::size_t size = 0; size < out.size(); ++size) {
    RowBinaryReader read(std::string_view(out).substr(0, size));
    CHECK(read.Text().empty());
    CHECK((read.is_short() && !read.is_damaged()));
  }
  RowBinaryReader huge("\xff\xff\xff\xff\xff\xff\x7f");
  CHECK(huge.Text().empty());
  CHECK(huge.is_damaged());
  RowBinaryReader endless("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff");
  endless.Length();
  CHECK(endless.is_damaged());
}

TEST_CASE("Quoting: no value ends its literal") {
  CHECK(QuoteText("a'b\\c") == "'a\\'b\\\\c'");
  CHECK(QuoteText(std::string("\0\n\x7f", 3)) == "'\\x00\\x0A\\x7F'");
  CHECK(QuoteName("a`b") == "`a\\`b`");
  CHECK(QuoteText("größe") == "'größe'");
  CHECK(QuoteHash({0xabULL, 1}) == "unhex('000000000000000100000000000000ab')");
  CHECK(QuoteList({}) == "(NULL)");
  const std::uint64_t numbers[] = {1, 18446744073709551615ULL};
  CHECK(QuoteList(numbers) == "(1,18446744073709551615)");
  CHECK(IsUuid("61f0c404-5cb3-11e7-907b-a6006ad3dba0"));
  CHECK_FALSE(IsUuid("61f0c404-5cb3-11e7-907b-a6006ad3dba0'"));
  CHECK_FALSE(IsUuid("61f0c404-5cb3-11e7-907b-a6006ad3db'0"));
}

TEST_CASE("Days: text and number") {
  CHECK(ParseDay("1970-01-01") == 0);
  CHECK(ParseDay("2026-11-22") == 20779);
  CHECK(DayText(20779) == "2026-11-22");
  for (const char* wrong : {"2026-02-30", "2026-1-01", "20261122", "1969-12-31", "2026-11-22x", ""})
    CHECK(ParseDay(wrong) == -1);
}

TEST_CASE("gzip: the body is one stream, and the next one is new") {
  GzipBody body;
  body.Append("hello ");
  body.Append("world");
  CHECK(body.plain_bytes() == 11);
  CHECK(Inflate(body.Take()) == "hello world");
  body.Append("again");
  CHECK(Inflate(body.Take()) == "again");
  CHECK(Inflate(body.Take()).empty());
}

TEST_CASE("Errors of a server: which are tried again") {
  for (const int code : {159, 202, 209, 210, 241, 242, 252, 319})
    CHECK(RetryOf(code, 500) == Retry::kLater);
  for (const int code : {16, 47, 60, 62, 81, 192, 193, 497, 516, -1})
    CHECK(RetryOf(code, 500) == Retry::kNever);
  CHECK(RetryOf(0, 0) == Retry::kLater);
  CHECK(RetryOf(0, 503) == Retry::kLater);
  CHECK(RetryOf(0, 404) == Retry::kNever);
  const char* old =
      "Code: 252, e.displayText() = DB::Exception: Too many parts (300)., e.what() = "
      "DB::Exception\n";
  CHECK(ExceptionCode(old) == 252);
  CHECK(ExceptionText(old) == "Code: 252, Too many parts (300).");
  CHECK(ExceptionCode("Code: 60. DB::Exception: Table x doesn't exist. (UNKNOWN_TABLE)") == 60);
  CHECK(ExceptionCode("no code") == 0);
  CHECK(ExceptionCode("Code: 99999999999999999999") == 0);
  CHECK(ExceptionText("a\x1b[2Jb") == "a [2Jb");
  CHECK(ExceptionText(std::string(10000, 'x')).size() < 410);
}

TEST_CASE("Waiting grows and has an end") {
  CHECK(Backoff(1, 0.0) >= std::chrono::milliseconds(20));
  CHECK(Backoff(1, 0.999) <= std::chrono::milliseconds(200));
  CHECK(Backoff(40, 0.999) <= std::chrono::milliseconds(20000));
  CHECK(Backoff(40, 0.999) > Backoff(3, 0.999));
}

TEST_CASE("URLs: what is refused before anything is sent") {
  const auto make = [](const char* url, bool is_insecure = false) {
    ClickHouseOptions options;
    options.url = url;
    options.allow_insecure = is_insecure;
    return ClickHouseClient::Make(options).has_value();
  };
  CHECK(make("http://127.0.0.1:8123"));
  CHECK(make("http://localhost:8123/"));
  CHECK(make("https://clickhouse.example:8443"));
  CHECK_FALSE(make("http://clickhouse.example:8123"));
  CHECK(make("http://clickhouse.example:8123", true));
  CHECK_FALSE(make("https://user:secret@clickhouse.example"));
  CHECK_FALSE(make("https://clickhouse.example/path"));
  CHECK_FALSE(make("https://clickhouse.example?password=x"));
  CHECK_FALSE(make("clickhouse.example:8123"));
  CHECK_FALSE(make("https://"));
}

TEST_CASE("Rows in TabSeparated: escapes, and what is no such row") {
  const auto rows = ParseTabSeparated("a\\tb\tc\\\\n\n\t\n", 2);
  REQUIRE(rows);
  CHECK(*rows == std::vector<std::vector<std::string>>{{"a\tb", "c\\n"}, {"", ""}});
  CHECK_FALSE(ParseTabSeparated("a\tb\tc\n", 2));
  CHECK_FALSE(ParseTabSeparated("a\tb", 2));
  CHECK_FALSE(ParseTabSeparated("a\tb\nCode: 241. DB::Exception: Memory limit", 2));
}

}  // namespace
}  // namespace tlparse
