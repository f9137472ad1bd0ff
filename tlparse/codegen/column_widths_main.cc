// Writes the columns that characters take in a terminal, as C++ source: ranges of those that do not
// take one. Run at build time: utf8proc, which knows them, has 330 kB of tables for other questions.
// usage: tlparse_column_widths OUT.inc
#include <utf8proc.h>

#include <cstdio>
#include <fstream>

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: tlparse_column_widths OUT.inc\n");
    return 2;
  }
  std::ofstream out(argv[1]);
  constexpr utf8proc_int32_t kEnd = 0x110000;
  for (utf8proc_int32_t first = 0, next = 0; first < kEnd; first = next) {
    const int width = utf8proc_charwidth(first);
    for (next = first + 1; next < kEnd && utf8proc_charwidth(next) == width;) ++next;
    if (width != 1) out << '{' << first << ',' << next - 1 << ',' << width << "},\n";
  }
  out.close();
  return out ? 0 : 1;
}
