# On Windows: builds from source, then runs the tests that do not need the native Redis client.
set -eu
npm ci --ignore-scripts
node scripts/build.mjs --tests
ctest --test-dir build/cmake/release -C Release --output-on-failure
npx jest test/lib test/middleware/headers test/middleware/options
