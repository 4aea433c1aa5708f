#include "transfer/curl_library.hpp"

#include <gtest/gtest.h>

#include <fstream>
#include <sstream>
#include <string>

namespace trainyard::transfer {
namespace {

bool libcurl_is_mapped() {
  std::ostringstream maps;
  maps << std::ifstream("/proc/self/maps").rdbuf();
  return maps.str().find("libcurl.so") != std::string::npos;
}

TEST(CurlLibrary, IsLoadedAtItsFirstUse) {
  EXPECT_FALSE(libcurl_is_mapped());
  EXPECT_EQ(curl().started, CURLE_OK);
  EXPECT_TRUE(libcurl_is_mapped());
  CURL* const handle = curl().curl_easy_init();
  ASSERT_NE(handle, nullptr);
  curl().curl_easy_cleanup(handle);
}

}  // namespace
}  // namespace trainyard::transfer
