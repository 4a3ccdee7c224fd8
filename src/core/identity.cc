// Packs short ids and hashes long ones with SipHash-2-4, 128-bit output.
#include "core/identity.h"

#include <algorithm>
#include <bit>

namespace rollgate {
namespace {

/// Source: Aumasson, Bernstein: SipHash, 2012; 128-bit output as in the reference implementation.
class SipHash128 {
 public:
  SipHash128(std::uint64_t k0, std::uint64_t k1)
      : v0_(k0 ^ 0x736f6d6570736575ULL),
        v1_(k1 ^ 0x646f72616e646f6dULL ^ 0xee),
        v2_(k0 ^ 0x6c7967656e657261ULL),
        v3_(k1 ^ 0x7465646279746573ULL) {}

  void Word(std::uint64_t word) {
    v3_ ^= word;
    Round();
    Round();
    v0_ ^= word;
  }

  Identity Finish(std::uint64_t last_word) {
    Word(last_word);
    v2_ ^= 0xee;
    for (int i = 0; i < 4; ++i) Round();
    Identity identity;
    identity.low = v0_ ^ v1_ ^ v2_ ^ v3_;
    v1_ ^= 0xdd;
    for (int i = 0; i < 4; ++i) Round();
    identity.high = v0_ ^ v1_ ^ v2_ ^ v3_;
    identity.kind = Identity::kHashed;
    return identity;
  }

 private:
  void Round() {
    v0_ += v1_;
    v1_ = std::rotl(v1_, 13) ^ v0_;
    v0_ = std::rotl(v0_, 32);
    v2_ += v3_;
    v3_ = std::rotl(v3_, 16) ^ v2_;
    v0_ += v3_;
    v3_ = std::rotl(v3_, 21) ^ v0_;
    v2_ += v1_;
    v1_ = std::rotl(v1_, 17) ^ v2_;
    v2_ = std::rotl(v2_, 32);
  }

  std::uint64_t v0_;
  std::uint64_t v1_;
  std::uint64_t v2_;
  std::uint64_t v3_;
};

/// The last word holds length and width, so Latin-1 and wide ids of equal bytes differ.
template <int kBits>
Identity Hashed(std::span<const char16_t> id, const Secret& secret) {
  constexpr std::size_t kPerWord = 64 / kBits;
  SipHash128 hash(secret.words[4], secret.words[5]);
  std::size_t i = 0;
  for (; i + kPerWord <= id.size(); i += kPerWord) {
    std::uint64_t word = 0;
    for (std::size_t j = 0; j < kPerWord; ++j) {
      word |= std::uint64_t{id[i + j]} << (j * kBits);
    }
    hash.Word(word);
  }
  std::uint64_t tail = 0;
  for (std::size_t j = 0; i + j < id.size(); ++j) tail |= std::uint64_t{id[i + j]} << (j * kBits);
  hash.Word(tail);
  return hash.Finish(std::uint64_t{id.size()} << 8 | kBits);
}

bool IsLatin1(std::span<const char16_t> id) {
  unsigned all = 0;
  for (const char16_t unit : id) all |= unit;
  return all < 0x100;
}

}  // namespace

Identity IdentityOf(std::span<const char16_t> id, const Secret& secret) {
  const bool is_latin1 = IsLatin1(id);
  if (is_latin1 && id.size() <= Identity::kLongestInline) {
    std::array<char16_t, Identity::kLongestInline> units{};
    std::copy(id.begin(), id.end(), units.begin());
    return IdentityOfLatin1(units, id.size());
  }
  return is_latin1 ? Hashed<8>(id, secret) : Hashed<16>(id, secret);
}

}  // namespace rollgate
