// A library of this machine that is loaded when it is first wanted, not when our program starts: libcurl brings thirty
// others along, whose loading takes longer than all else that a short job's agent does.
//
//   struct Library { decltype(&::curl_easy_init) curl_easy_init; .. };
//   const Library& library() {
//     static const Library loaded = [] {
//       SharedLibrary file("libcurl.so.4");
//       Library found{};
//       file.find(found.curl_easy_init, "curl_easy_init");
//       ..
//
// Threads: an instance is confined to one. Errors: a library that the build found and the machine lacks ends the program,
// as one that it links does. Lifetime: what was loaded stays.
#pragma once

namespace trainyard::os {

class SharedLibrary {
 public:
  explicit SharedLibrary(const char* name);
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
