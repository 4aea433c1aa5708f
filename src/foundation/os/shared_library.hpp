// Loads a library of this machine when it is first needed, not when our program starts: libcurl
// depends on thirty others, which take longer to load than all other work of a short job's agent.
//
//   struct Library { decltype(&::curl_easy_init) curl_easy_init; .. };
//   const Library& library() {
//     static const Library loaded = [] {
//       SharedLibrary file("libcurl.so.4");
//       Library found{};
//       file.find(found.curl_easy_init, "curl_easy_init");
//       ..
//
// Threads: an instance is confined to one. Errors: a library that the build found and the machine
// lacks ends the program, like a linked one, unless is_there() was called before. Lifetime: a
// loaded library stays.
#pragma once

namespace trainyard::os {

class SharedLibrary {
 public:
  explicit SharedLibrary(const char* name);
  // Loads the library, and returns false if the machine lacks it.
  static bool is_there(const char* name);
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
