#include "base/gzip_body.h"

#include <zlib.h>

#include <array>

namespace tlparse {

struct GzipBody::Stream {
  z_stream z{};
};

GzipBody::GzipBody() : stream_(std::make_unique<Stream>()) {
  // Level 1: higher ones cost two to five times the processor time for a tenth fewer bytes.
  deflateInit2(&stream_->z, 1, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY);
}

GzipBody::~GzipBody() { deflateEnd(&stream_->z); }

void GzipBody::Run(std::string_view plain, bool is_last) {
  std::array<char, 65536> buffer;
  z_stream& z = stream_->z;
  // zlib's interface is not const.
  z.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(plain.data()));
  z.avail_in = static_cast<uInt>(plain.size());
  do {
    z.next_out = reinterpret_cast<Bytef*>(buffer.data());
    z.avail_out = buffer.size();
    deflate(&z, is_last ? Z_FINISH : Z_NO_FLUSH);
    out_.append(buffer.data(), buffer.size() - z.avail_out);
  } while (z.avail_out == 0);
}

void GzipBody::Append(std::string_view plain) {
  plain_bytes_ += plain.size();
  constexpr std::size_t kMost = std::size_t{1} << 30;
  for (; plain.size() > kMost; plain.remove_prefix(kMost)) Run(plain.substr(0, kMost), false);
  Run(plain, false);
}

std::string GzipBody::Take() {
  Run({}, true);
  deflateReset(&stream_->z);
  plain_bytes_ = 0;
  return std::move(out_);
}

}  // namespace tlparse
