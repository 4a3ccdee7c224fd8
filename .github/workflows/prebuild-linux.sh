# In a container with Node: installs what a build and its tests take, makes the binary and tests it.
set -eu
if command -v apk > /dev/null; then
  apk add --no-cache bash g++ git linux-headers make cmake ninja pkgconf gtest-dev redis chromium \
    binutils openssl
else
  apt-get update
  apt-get install -y --no-install-recommends g++ git make cmake ninja-build pkg-config \
    libgtest-dev redis-server chromium ca-certificates openssl
fi
sh .github/workflows/build-hiredis.sh
npm run prebuilds
sh .github/workflows/test-binary.sh
