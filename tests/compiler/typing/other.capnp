@0xbf5147bb5cf7b8d2;
struct Thing { a @0 :Int32; }
