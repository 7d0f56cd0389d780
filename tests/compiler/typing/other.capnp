@0xbf5147bb5cf7b8d2;
struct Thing { a @0 :Int32; }
struct Shelf(A, B) {
  a @0 :A;
  rows @1 :List(Row);
  import @2 :Text;
  struct Row { b @0 :B; }
}
