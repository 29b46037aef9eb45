fn main(){
let g:grundy::rule::Rule=std::env::args().nth(1).unwrap().parse().unwrap(); let n:usize=std::env::args().nth(2).unwrap().parse().unwrap();
let t=std::time::Instant::now();
let mut last=0;
let v=grundy::sparse::extend(&g,grundy::sparse::Method::Sparse(grundy::mex::Kernel::best()),vec![],n,4096,|k|{ if k/10_000_000!=last {last=k/10_000_000; eprintln!("{k} {:.1} s",t.elapsed().as_secs_f64());} true}).unwrap();
let e=t.elapsed().as_secs_f64();
println!("{} {:?} {:.2}M/s max {:?}",v.len(),e,n as f64/e/1e6, v.iter().max());
let s=grundy::sparse::Histogram::of(v.as_slice()).unwrap().best_space(&g); println!("{:?}",s);
let space=s.0; let r:Vec<usize>=(0..v.len()).filter(|&i|space.is_rare(v[i],i as u64)).collect(); println!("rares {} last {:?}",r.len(),r.last());
if n<=60000 {let d=grundy::definition::values(&g,n).unwrap(); println!("{:?}",(0..n).find(|&i|d[i]!=v[i]));}
}
