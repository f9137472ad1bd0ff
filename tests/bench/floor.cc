// What no verifying reader on one core can beat: reads files in blocks of 1 MiB and computes one
// MD5 over all their bytes. Prints "<bytes> <seconds> <md5>"; exit code 1 and a line on stderr if
// a file can't be read. The benchmarks put every ingest beside a run of it.
#include <openssl/evp.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <vector>

namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 20;

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
struct FreeDigest {
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
};

// Adds the file's bytes to the digest; false if it can't be read to its end.
bool AddFile(const char* path, std::vector<char>& block, EVP_MD_CTX* digest, std::uint64_t& bytes) {
  const std::unique_ptr<std::FILE, CloseFile> file(std::fopen(path, "rb"));
  if (!file) return false;
  std::setvbuf(file.get(), nullptr, _IONBF, 0);
  while (const std::size_t size = std::fread(block.data(), 1, block.size(), file.get())) {
    EVP_DigestUpdate(digest, block.data(), size);
    bytes += size;
  }
  return std::ferror(file.get()) == 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::unique_ptr<EVP_MD_CTX, FreeDigest> digest(EVP_MD_CTX_new());
  if (!digest || EVP_DigestInit_ex(digest.get(), EVP_md5(), nullptr) != 1) {
    std::fputs("floor: OpenSSL has no MD5\n", stderr);
    return 1;
  }
  std::vector<char> block(kBlockBytes);
  std::uint64_t bytes = 0;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 1; i < argc; ++i) {
    if (!AddFile(argv[i], block, digest.get(), bytes)) {
      std::fprintf(stderr, "floor: cannot read %s\n", argv[i]);
      return 1;
    }
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> md5{};
  unsigned int md5_bytes = 0;
  EVP_DigestFinal_ex(digest.get(), md5.data(), &md5_bytes);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  std::printf("%llu %.6f ", static_cast<unsigned long long>(bytes), seconds.count());
  for (unsigned int i = 0; i < md5_bytes; ++i) std::printf("%02x", md5[i]);
  std::puts("");
  return 0;
}
