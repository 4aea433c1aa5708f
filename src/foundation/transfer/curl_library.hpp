// Loads libcurl when the first connection is made (os/shared_library.hpp), for all modules that use
// it.
//
// Threads: callable from anywhere. Errors: none; the package depends on the library. Lifetime: the
// library is never unloaded.
#pragma once

#include <curl/curl.h>

namespace trainyard::transfer {

// The used functions of libcurl.
#define TRAINYARD_CURL_FUNCTIONS(EACH) \
  EACH(curl_easy_cleanup)              \
  EACH(curl_easy_getinfo)              \
  EACH(curl_easy_init)                 \
  EACH(curl_easy_pause)                \
  EACH(curl_easy_perform)              \
  EACH(curl_easy_recv)                 \
  EACH(curl_easy_reset)                \
  EACH(curl_easy_send)                 \
  EACH(curl_easy_setopt)               \
  EACH(curl_easy_strerror)             \
  EACH(curl_global_init)               \
  EACH(curl_multi_add_handle)          \
  EACH(curl_multi_cleanup)             \
  EACH(curl_multi_info_read)           \
  EACH(curl_multi_init)                \
  EACH(curl_multi_perform)             \
  EACH(curl_multi_poll)                \
  EACH(curl_multi_remove_handle)       \
  EACH(curl_slist_append)              \
  EACH(curl_slist_free_all)

struct CurlFunctions {
#define TRAINYARD_MEMBER(name) decltype(&::name) name;
  TRAINYARD_CURL_FUNCTIONS(TRAINYARD_MEMBER)
#undef TRAINYARD_MEMBER
  CURLcode started;  // the result of curl_global_init
};

// Returns the functions. The first call loads and initialises the library.
const CurlFunctions& curl();

}  // namespace trainyard::transfer
