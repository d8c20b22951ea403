import numpy as np
def pairs(a,b,grow,method):
    same=b is None
    if same: b=a
    I=[];J=[]
    for i in range(len(a)):
        ok=((b[:,:3]-a[i,3:]<=grow)&(a[i,:3]-b[:,3:]<=grow)).all(1)
        j=np.flatnonzero(ok)
        if same: j=j[j>i]
        I.append(np.full(len(j),i)); J.append(j)
    return np.concatenate(I).astype(np.int64),np.concatenate(J).astype(np.int64)
