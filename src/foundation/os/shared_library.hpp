// SharedLibrary loads a library when it is first needed, not when the program starts. For example,
// libcurl depends on thirty libraries, which take longer to load than all other work of the agent
// of a short job.
//
//   struct Library { decltype(&::curl_easy_init) curl_easy_init; .. };
//   const Library& library() {
//     static const Library loaded = [] {
//       SharedLibrary file("libcurl.so.4");
//       Library found{};
//       file.find(found.curl_easy_init, "curl_easy_init");
//       ..
//
// Threads: an instance is confined to one. Errors: a missing library ends the program, as a linked
// library would; call is_available() before if it may be missing. Lifetime: a library is never
// unloaded.
#pragma once

namespace trainyard::os {

class SharedLibrary {
 public:
  explicit SharedLibrary(const char* name);
  // Loads the library. Returns false if this machine does not have it.
  static bool is_available(const char* name);
  template <class Function>
  void find(Function*& function, const char* symbol) const {
    function = reinterpret_cast<Function*>(address_of(symbol));
  }

 private:
  void* address_of(const char* symbol) const;
  const char* const name_;
  void* const handle_;
};

}  // namespace trainyard::os
