#!/bin/sh
# Makes what is given to others.
#
# Missing Debian packages are installed first.
#
#   scripts/package.sh static [FOLDER]   tlparse-<version>-linux-x86_64 in FOLDER (default: dist): one file, statically linked, that runs
#                                        on any Linux of that kind. On Debian 12 and newer; libraries that Debian has as shared ones only are
#                                        built from its sources, in build-static/.
#   scripts/package.sh wheel [FOLDER]    the same file and the Python package tracekit (python/) as a wheel; the file of `static` is taken if
#                                        it is in FOLDER already
#   scripts/package.sh deb [FOLDER]      Debian packages of this release of Debian: tracekit-tlparse, libtorchtrace0, libtorchtrace-dev
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
what=${1:-}
out=${2:-$root/dist}
work=$root/build-static
version=$(sed -n 's/^project(tracekit VERSION \([0-9.]*\) .*/\1/p' "$root/CMakeLists.txt")
jobs=${TRACEKIT_JOBS:-$(nproc)}

say() { echo "package.sh: $*" >&2; }

# The sources of Debian packages, unpacked in $work/sources.
fetch_sources() {
  mkdir -p "$work/sources/lists/partial"
  mirror=$(apt-get indextargets --format '$(REPO_URI)' | grep '/debian/$' | head -n 1)
  release=$(. /etc/os-release && echo "$VERSION_CODENAME")
  echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror $release main" >"$work/sources/sources.list"
  options="-o Dir::Etc::sourcelist=$work/sources/sources.list -o Dir::Etc::sourceparts=- -o Dir::State::lists=$work/sources/lists"
  # shellcheck disable=SC2086
  (cd "$work/sources" && apt-get $options -qq update && apt-get $options -qq source --only-source "$@")
}

# build_library NAME LEVEL CMAKE_OPTION…: from $work/sources/NAME-<version> into $work/prefix, optimized so.
build_library() {
  name=$1 level=$2
  shift 2
  set -- "$@" -DCMAKE_BUILD_TYPE=Release "-DCMAKE_C_FLAGS_RELEASE=$level -DNDEBUG" "-DCMAKE_CXX_FLAGS_RELEASE=$level -DNDEBUG" -DCMAKE_INSTALL_PREFIX="$work/prefix" -DCMAKE_INSTALL_LIBDIR=lib -DBUILD_SHARED_LIBS=OFF \
    "-DCMAKE_C_FLAGS=$flags $c_only" "-DCMAKE_CXX_FLAGS=$flags" -DCMAKE_PREFIX_PATH="$work/prefix"
  cmake -S "$(echo "$work/sources/$name"-*/)" -B "$work/$name" -G Ninja "$@" >"$work/$name.log" 2>&1 &&
    ninja -C "$work/$name" -j "$jobs" install >>"$work/$name.log" 2>&1 || { tail -n 20 "$work/$name.log" >&2; exit 1; }
}

# Debian's static libcrypto and libssl are a quarter of the file. This one has what TLS to a ClickHouse or Redis of today needs, and looks for
# certificates where Debian's does.
build_openssl() {
  features="no-shared no-tests no-legacy no-engine no-dso no-module no-cms no-ct no-ts no-ocsp no-srp no-psk no-dtls no-sctp no-comp no-cmp
    no-sm2 no-sm3 no-sm4 no-gost no-camellia no-aria no-seed no-idea no-bf no-cast no-des no-rc2 no-rc4 no-rmd160 no-md4 no-mdc2 no-whirlpool
    no-blake2 no-dsa no-ec2m no-siphash no-scrypt no-ssl3 no-tls1 no-tls1_1 no-ssl-trace no-ui-console no-rfc3779 no-nextprotoneg no-chacha
    no-poly1305 no-dh no-ocb no-siv no-cmac no-async no-filenames no-pic"
  # The tables of the code that only P-256 has are 0.15 MB: it uses the code of all curves. OpenSSL writes into itself when it was built.
  # shellcheck disable=SC2086
  (cd "$(echo "$work/sources/openssl"-*/)" && sed -i '/ECASM_x86_64=/s/ecp_nistz256.c ecp_nistz256-x86_64.s//; /ECDEF_x86_64=/s/ECP_NISTZ256_ASM//' crypto/ec/build.info &&
    ./Configure linux-x86_64 $features --prefix=/usr --libdir=lib --openssldir=/usr/lib/ssl \
      -Os -ffunction-sections -fdata-sections -fno-pie $c_only && export SOURCE_DATE_EPOCH=0 && make -j "$jobs" build_libs && make install_dev DESTDIR="$work/openssl" &&
    cp -r "$work/openssl/usr/include" "$work/prefix/" && cp "$work"/openssl/usr/lib/*.a "$work/prefix/lib/") >"$work/openssl.log" 2>&1 ||
    { tail -n 20 "$work/openssl.log" >&2; exit 1; }
}

# The same for SQLite; its single source is made by tclsh. Sines and tangents would bring 0.27 MB of tables of the C library.
build_sqlite() {
  (cd "$(echo "$work/sources/sqlite3"-*/)" && ./configure --disable-tcl --disable-readline && make sqlite3.c &&
    sed -i -E '/MFUNCTION\((a?(sin|cos|tan)h?|atan2),/d' sqlite3.c &&
    cc $flags $c_only -Os -DNDEBUG -DSQLITE_THREADSAFE=1 -DSQLITE_ENABLE_FTS5 -DSQLITE_ENABLE_MATH_FUNCTIONS -DSQLITE_ENABLE_COLUMN_METADATA \
      -DSQLITE_MAX_VARIABLE_NUMBER=250000 -DSQLITE_OMIT_LOAD_EXTENSION -c sqlite3.c -o sqlite3.o &&
    ar rcsD "$work/prefix/lib/libsqlite3.a" sqlite3.o && cp sqlite3.h sqlite3ext.h "$work/prefix/include/") >"$work/sqlite.log" 2>&1 ||
    { tail -n 20 "$work/sqlite.log" >&2; exit 1; }
}

build_libraries() {
  [ -e "$work/prefix/done" ] && return
  say "building OpenSSL without what is not used, and libraries that Debian has as shared ones only"
  fetch_sources openssl sqlite3 simdjson libzip cpp-httplib fmtlib spdlog
  mkdir -p "$work/prefix/lib" "$work/prefix/include"
  build_openssl
  build_sqlite
  # For processors with AVX2, and for all others; the forms between and above are 65 kB.
  build_library simdjson -O3 -DSIMDJSON_DEVELOPER_MODE=OFF "-DSIMDJSON_EXCLUDE_IMPLEMENTATION=icelake;westmere"
  build_library fmtlib -Os -DFMT_TEST=OFF -DFMT_DOC=OFF
  build_library spdlog -Os -DSPDLOG_FMT_EXTERNAL=ON -DSPDLOG_BUILD_EXAMPLE=OFF -DSPDLOG_BUILD_TESTS=OFF
  build_library libzip -Os -DENABLE_BZIP2=OFF -DENABLE_LZMA=OFF -DENABLE_ZSTD=OFF -DENABLE_GNUTLS=OFF -DENABLE_MBEDTLS=OFF -DENABLE_OPENSSL=OFF \
    -DENABLE_COMMONCRYPTO=OFF -DBUILD_TOOLS=OFF -DBUILD_REGRESS=OFF -DBUILD_EXAMPLES=OFF -DBUILD_DOC=OFF
  build_library cpp-httplib -Os -DHTTPLIB_COMPILE=ON -DHTTPLIB_REQUIRE_OPENSSL=ON -DHTTPLIB_USE_BROTLI_IF_AVAILABLE=OFF
  cat >"$work/prefix/lib/pkgconfig/cpp-httplib.pc" <<PC
Name: cpp-httplib
Description: cpp-httplib
Version: 0
Libs: -L$work/prefix/lib -lhttplib -lssl -lcrypto -lz -pthread
Cflags: -I$work/prefix/include -DCPPHTTPLIB_OPENSSL_SUPPORT -DCPPHTTPLIB_ZLIB_SUPPORT
PC
  touch "$work/prefix/done"
}

build_static() {
  # No path of this machine is in the file, and nothing depends on the order in which things finish.
  flags="-O2 -fno-pie -no-pie -ffunction-sections -fdata-sections -ffile-prefix-map=$root=. -ffile-prefix-map=$work=."
  # No exception passes through C.
  c_only="-fno-asynchronous-unwind-tables -fno-unwind-tables"
  mkdir -p "$work" "$out"
  build_libraries
  echo 'set(CMAKE_FIND_LIBRARY_SUFFIXES .a)' >"$work/static.cmake"  # project() sets it too
  PKG_CONFIG_PATH="$work/prefix/lib/pkgconfig" cmake -S "$root" -B "$work/tlparse" -G Ninja -DCMAKE_BUILD_TYPE=Release \
    -DCMAKE_CXX_FLAGS_RELEASE="-DNDEBUG" "-DCMAKE_CXX_FLAGS=$flags" -DCMAKE_EXE_LINKER_FLAGS="-static -fuse-ld=gold -Wl,--icf=all -Wl,--gc-sections -Wl,-O2 -Wl,--build-id=none" \
    -DCMAKE_PROJECT_INCLUDE="$work/static.cmake" -DOPENSSL_USE_STATIC_LIBS=ON -DOPENSSL_ROOT_DIR="$work/prefix" -DCMAKE_PREFIX_PATH="$work/prefix" -DCMAKE_UNITY_BUILD=ON \
    -DCMAKE_UNITY_BUILD_BATCH_SIZE=24 -DTRACEKIT_BUILD_VIEWER=ON -DTRACEKIT_SMALL=ON -DTRACEKIT_BUILD_LIBTRACE=OFF -DTRACEKIT_WITH_TORCH=OFF >"$work/configure.log" ||
    { cat "$work/configure.log" >&2; exit 1; }
  ninja -C "$work/tlparse" -j "$jobs" tlparse >"$work/build.log" || { tail -n 30 "$work/build.log" >&2; exit 1; }
  file=$out/tlparse-$version-linux-x86_64
  strip --strip-all -o "$file" "$work/tlparse/bin/tlparse"
  size=$(stat -c %s "$file")
  say "$file, $size bytes, sha256 $(sha256sum "$file" | cut -c 1-16)…"
  [ "$size" -le 12000000 ] || say "that is more than the 12 MB that the documents promise"
}

build_debs() {
  mkdir -p "$out"
  cmake -S "$root" -B "$root/build-deb" -G Ninja -DCMAKE_BUILD_TYPE=Release -DCMAKE_CXX_FLAGS_RELEASE="-O2 -DNDEBUG" "-DCMAKE_CXX_FLAGS=-ffile-prefix-map=$root=." \
    -DCMAKE_INSTALL_LIBDIR="lib/$(dpkg-architecture -qDEB_HOST_MULTIARCH)" -DCMAKE_UNITY_BUILD=ON -DCMAKE_UNITY_BUILD_BATCH_SIZE=24 -DCMAKE_SKIP_RPATH=ON \
    -DTRACEKIT_BUILD_VIEWER=ON -DBUILD_SHARED_LIBS=ON -DTRACEKIT_WITH_TORCH=OFF >/dev/null
  ninja -C "$root/build-deb" -j "$jobs" >"$root/build-deb/build.log" || { tail -n 30 "$root/build-deb/build.log" >&2; exit 1; }
  (cd "$root/build-deb" && cpack -G DEB -B "$out" >/dev/null)
  rm -r "$out/_CPack_Packages"
  ls "$out"/*.deb
}

case $what in static | wheel | deb) "$root/scripts/install-deps.sh" package >&2 ;; esac
case $what in
  deb) build_debs ;;
  static) build_static ;;
  wheel)
    mkdir -p "$out"
    [ -e "$out/tlparse-$version-linux-x86_64" ] || build_static
    python3 "$root/scripts/make-wheel.py" "$version" "$out/tlparse-$version-linux-x86_64" "$root/python/tracekit" "$out"
    ;;
  *)
    sed -n '2,12s/^# \{0,1\}//p' "$0" >&2
    exit 2
    ;;
esac
