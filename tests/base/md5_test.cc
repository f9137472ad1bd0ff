#include "base/md5.h"

#include <random>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/md5_lanes.h"
#include "tests/catch2.h"

namespace tlparse {
namespace {

std::string RandomBytes(std::mt19937_64& random, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(random());
  return bytes;
}

// Copies to the heap so that a sanitizer sees every read beyond a message.
void RequireEqualToOpenSsl(const Md5Kernel& kernel, const std::vector<std::string>& messages) {
  std::vector<std::vector<char>> exact;
  std::vector<std::string_view> views;
  for (const std::string& message : messages) {
    exact.emplace_back(message.begin(), message.end());
    views.emplace_back(exact.back().data(), exact.back().size());
  }
  std::vector<Md5Digest> digests(views.size());
  Md5ManyWith(kernel, views, digests);
  for (std::size_t i = 0; i < views.size(); ++i) {
    INFO(kernel.name << " message " << i << " of " << views[i].size() << " bytes");
    REQUIRE(ToHex(digests[i]) == ToHex(Md5(views[i])));
  }
}

TEST_CASE("Md5 gives the digests of RFC 1321", "[md5]") {
  CHECK(ToHex(Md5("")) == "d41d8cd98f00b204e9800998ecf8427e");
  CHECK(ToHex(Md5("abc")) == "900150983cd24fb0d6963f7d28e17f72");
  CHECK(ToHex(Md5("a\n")) == "60b725f10c9c85c70d97880dfe8191b3");
  std::string in_thread;
  std::thread([&] { in_thread = ToHex(Md5("message digest")); }).join();
  CHECK(in_thread == "f96b697d7cb7938d525a2f31aaf161d0");
}

TEST_CASE("Md5Stream gives the digest of what came so far, however it was cut", "[md5]") {
  std::mt19937_64 random(2);
  const std::string bytes = RandomBytes(random, 300);
  Md5Stream stream;
  CHECK(stream.Digest() == Md5(""));
  for (std::size_t at = 0, size = 0; at < bytes.size(); at += size, size = (size + 7) % 64) {
    size = std::min(size, bytes.size() - at);
    stream.Add(std::string_view(bytes).substr(at, size));
    CHECK(stream.Digest() == Md5(bytes.substr(0, at + size)));
  }
}

TEST_CASE("ParseMd5Hex takes 32 hex digits and nothing else", "[md5]") {
  const Md5Digest digest = Md5("abc");
  CHECK(ParseMd5Hex("900150983cd24fb0d6963f7d28e17f72") == digest);
  CHECK(ParseMd5Hex("900150983CD24FB0D6963F7D28E17F72") == digest);
  CHECK_FALSE(ParseMd5Hex("900150983cd24fb0d6963f7d28e17f7"));
  CHECK_FALSE(ParseMd5Hex("900150983cd24fb0d6963f7d28e17f720"));
  CHECK_FALSE(ParseMd5Hex("900150983cd24fb0d6963f7d28e17fg2"));
  CHECK_FALSE(ParseMd5Hex(std::string(32, '\0')));
  CHECK_FALSE(ParseMd5Hex(""));
}

TEST_CASE("Every lane kernel agrees with OpenSSL for each length up to 700", "[md5]") {
  std::mt19937_64 random(1);
  std::vector<std::string> messages;
  for (std::size_t size = 0; size <= 700; ++size) messages.push_back(RandomBytes(random, size));
  for (const Md5Kernel& kernel : SupportedMd5Kernels()) {
    RequireEqualToOpenSsl(kernel, messages);
    // The same lengths in every lane at once, where no lane has to wait for another.
    for (std::size_t size = 0; size <= 130; ++size) {
      std::vector<std::string> same;
      for (std::size_t i = 0; i < kernel.lanes; ++i) same.push_back(RandomBytes(random, size));
      RequireEqualToOpenSsl(kernel, same);
    }
  }
}

TEST_CASE("Every lane kernel agrees with OpenSSL for random batches", "[md5]") {
  std::mt19937_64 random(2);
  for (const Md5Kernel& kernel : SupportedMd5Kernels()) {
    for (int round = 0; round < 150; ++round) {
      std::vector<std::string> messages(random() % 60);
      for (std::string& message : messages) {
        const std::size_t limit = std::size_t{1} << (random() % 16);
        message = RandomBytes(random, random() % limit);
      }
      RequireEqualToOpenSsl(kernel, messages);
    }
    // One giant among dwarfs, and giants alone.
    std::vector<std::string> messages(30, "dwarf");
    messages.push_back(RandomBytes(random, 400'000));
    RequireEqualToOpenSsl(kernel, messages);
    RequireEqualToOpenSsl(kernel, std::vector<std::string>(3, messages.back()));
  }
}

TEST_CASE("Md5Many fills one digest per message whatever their number", "[md5]") {
  for (const std::size_t count : {0u, 1u, 2u, 3u, 7u, 8u, 9u, 16u, 17u, 100u}) {
    std::vector<std::string> texts;
    for (std::size_t i = 0; i < count; ++i) texts.push_back("message " + std::to_string(i));
    const std::vector<std::string_view> messages(texts.begin(), texts.end());
    std::vector<Md5Digest> digests(count);
    Md5Many(messages, digests);
    for (std::size_t i = 0; i < count; ++i) CHECK(digests[i] == Md5(texts[i]));
  }
}

}  // namespace
}  // namespace tlparse
