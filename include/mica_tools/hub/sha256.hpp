// SPDX-License-Identifier: Apache-2.0
//
// SHA-256 by OpenSSL, which is present where the HTTP library has TLS.
#pragma once

#include "mica/base/assert.hpp"

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <httplib.h>
#if defined(CPPHTTPLIB_OPENSSL_SUPPORT)
#include <openssl/evp.h>
#endif

namespace mica::hub {

#if defined(CPPHTTPLIB_OPENSSL_SUPPORT)

class Sha256 {
 public:
  /// Raises ErrorCode::failed where OpenSSL does not have it.
  Sha256() : context_(::EVP_MD_CTX_new()) {
    MICA_CHECK(context_ && ::EVP_DigestInit_ex(context_.get(), ::EVP_sha256(), nullptr) == 1, failed,
               "OpenSSL has no SHA-256 here, so that no download can be checked");
  }
  /// More bytes, in order.
  void add(std::span<const std::byte> bytes) {
    MICA_CHECK(::EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size()) == 1, failed,
               "OpenSSL's SHA-256 failed");
  }
  /// The sum as 64 hexadecimal digits. May be called only once.
  [[nodiscard]] std::string digits() {
    unsigned char sum[EVP_MAX_MD_SIZE];
    unsigned size = 0;
    MICA_CHECK(::EVP_DigestFinal_ex(context_.get(), sum, &size) == 1, failed, "OpenSSL's SHA-256 failed");
    std::string out;
    for (unsigned i = 0; i < size; ++i)
      out += {"0123456789abcdef"[sum[i] >> 4], "0123456789abcdef"[sum[i] & 15]};
    return out;
  }

 private:
  struct Free {
    void operator()(::EVP_MD_CTX* context) const noexcept { ::EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<::EVP_MD_CTX, Free> context_;
};

#else

class Sha256 {
 public:
  /// The constructor raises ErrorCode::unsupported, so that nothing else can be called.
  Sha256() {
    raise(
        ErrorCode::unsupported,
        "this program was built without OpenSSL, which checks downloads; build it with OpenSSL, or download "
        "the file and name that");
  }
  void add(std::span<const std::byte>) {}
  [[nodiscard]] std::string digits() { return {}; }
};

#endif

}  // namespace mica::hub
